import { beforeAll, describe, expect, it } from "vitest";
import type { TestTenant } from "./support.ts";
import { call, entries, entry, newKey, newTenant } from "./support.ts";

let tenant: TestTenant;
const path = (name: string) => `/v1/principals/${name}/entries`;

beforeAll(async () => {
  tenant = await newTenant();
});

interface Result {
  index: number;
  id?: string;
  seq?: number;
  hash?: string;
  status?: string;
  error?: { type: string; status: number; pointer?: string; detail?: string; differs?: string[] };
}
const results = (answer: { body: unknown }) => (answer.body as { results: Result[] }).results;

describe("append", () => {
  it("stores one entry and answers its receipt and the signed head", async () => {
    const answer = await call(tenant.key, "POST", path("one"), entry({ id: "first" }));
    expect(answer.status).toBe(201);
    expect(results(answer)).toEqual([
      { index: 0, id: "first", seq: 1, hash: expect.stringMatching(/^[0-9a-f]{64}$/), status: "stored" },
    ]);
    const { head } = answer.body as unknown as {
      head: { size: number; seq: number; hash: string; checkpoint: string };
    };
    expect(head.size).toBe(1);
    expect(head.hash).toBe(results(answer)[0]?.hash);
    expect(head.checkpoint).toMatch(/^runseal\.local\/t\/[0-9a-f]{32}\/p\/[0-9a-f]{32}\.1\n1\n/);
  });

  it("numbers a batch in input order, and goes on from there", async () => {
    const first = await call(tenant.key, "POST", path("batch"), entries(5));
    const second = await call(tenant.key, "POST", path("batch"), entries(3));
    expect(results(first).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
    expect(results(second).map(({ seq }) => seq)).toEqual([6, 7, 8]);
  });

  it("takes NDJSON, where a bad line costs only itself", async () => {
    const lines = [JSON.stringify(entry()), "{not json", JSON.stringify(entry()), ""].join("\n");
    const answer = await call(tenant.key, "POST", path("lines"), lines, {
      "content-type": "application/x-ndjson",
    });
    expect(answer.status).toBe(207);
    expect(results(answer).map(({ seq }) => seq ?? null)).toEqual([1, null, 2]);
    expect(results(answer)[1]?.error?.type).toBe("urn:runseal:problem:json-syntax");
  });

  it("answers a retry with the first receipt, and the same id with other content with a conflict", async () => {
    const original = entry({ id: "same" });
    const first = await call(tenant.key, "POST", path("retry"), original);
    await call(tenant.key, "POST", path("retry"), entries(2));
    const again = await call(tenant.key, "POST", path("retry"), original);
    expect(again.status).toBe(200);
    expect(results(again)[0]).toEqual({ ...results(first)[0], status: "seen" });
    expect((again.body as unknown as { head: { size: number } }).head.size).toBe(3);
    const other = await call(tenant.key, "POST", path("retry"), {
      ...original,
      action: { tool: "write_file", args: {} },
    });
    expect(other.status).toBe(409);
    expect(other.body.type).toBe("urn:runseal:problem:conflict");
    expect(other.body.differs).toEqual(["/action/args", "/action/tool"].sort());
  });

  it("does not say what differs to a key that may not read", async () => {
    const writer = await newKey(tenant, ["ingest", "create"]);
    const original = entry({ id: "secret" });
    await call(writer, "POST", path("blind"), original);
    const other = await call(writer, "POST", path("blind"), { ...original, step: "s2" });
    expect(other.status).toBe(409);
    expect(other.body.differs).toBeUndefined();
    expect(other.body.pointer).toBeUndefined();
  });

  it("shares a receipt between equal entries of one batch, and refuses the second of unequal ones", async () => {
    const twin = entry({ id: "twin" });
    const answer = await call(tenant.key, "POST", path("twins"), [twin, twin, { ...twin, run: "run-2" }]);
    expect(answer.status).toBe(207);
    expect(results(answer).map(({ seq }) => seq ?? null)).toEqual([1, 1, null]);
    expect(results(answer)[2]?.error?.status).toBe(409);
  });

  it("stores nothing of an atomic batch with one bad entry, and names it", async () => {
    const bad = entry({ kind: "no.such.kind" });
    const answer = await call(tenant.key, "POST", `${path("atomic")}?atomic=true`, [...entries(2), bad]);
    expect(answer.status).toBe(422);
    expect(answer.body.type).toBe("urn:runseal:problem:batch-refused");
    expect(answer.body.pointer).toBe("/2/kind");
    const head = await call(tenant.key, "GET", "/v1/principals/atomic/head");
    expect(head.status).toBe(404);
    const stored = entry({ id: "taken" });
    await call(tenant.key, "POST", path("atomic"), stored);
    const conflict = await call(tenant.key, "POST", `${path("atomic")}?atomic=true`, [
      entry(),
      { ...stored, run: "r9" },
    ]);
    expect(conflict.status).toBe(422);
    expect((await call(tenant.key, "GET", "/v1/principals/atomic/head")).body.size).toBe(1);
  });

  it("keeps numbers and __proto__ exactly as sent", async () => {
    const args = '{"__proto__":{"x":1},"big":9007199254740993,"one":1.0,"exp":1e0,"neg":-0}';
    const text = `{"id":"exact","kind":"tool.call.started","run":"r","call":"c","action":{"tool":"t","args":${args}}}`;
    expect((await call(tenant.key, "POST", path("exact"), text)).status).toBe(201);
    const page = await call(tenant.key, "GET", path("exact"));
    expect(page.text).toContain(
      '"args":{"__proto__":{"x":1},"big":9007199254740993,"exp":1e0,"neg":-0,"one":1.0}',
    );
  });

  it("makes an id where there is none", async () => {
    const { id: _id, ...anonymous } = entry();
    const answer = await call(tenant.key, "POST", path("anonymous"), anonymous);
    expect(results(answer)[0]?.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  });

  it("adds a proof to each receipt when asked", async () => {
    const answer = await call(tenant.key, "POST", `${path("proved")}?proof=true`, entries(3));
    for (const result of results(answer)) {
      expect((result as { proof?: string }).proof).toMatch(/^c2sp\.org\/tlog-proof@v1\nindex /);
    }
  });

  it("answers after the head is mirrored when asked", async () => {
    const answer = await call(tenant.key, "POST", `${path("mirrored")}?wait=mirrored`, entries(3));
    expect(answer.status).toBe(201);
    expect(answer.body.mirrored_size).toBe(3);
  });
});

describe("refusals", () => {
  const cases: [string, string, number, string, string][] = [
    [
      "two equal keys",
      '{"kind":"tool.call.started","action":{"tool":"t","args":{"a":1,"a":2}}}',
      422,
      "json-duplicate-key",
      "/action/args/a",
    ],
    [
      "two equal members",
      '{"kind":"tool.call.started","kind":"run.created","action":{}}',
      422,
      "json-duplicate-key",
      "/kind",
    ],
    [
      "unpaired surrogate",
      '{"kind":"tool.call.started","action":{"tool":"t","args":["\\ud800"]}}',
      422,
      "json-surrogate",
      "/action/args/0",
    ],
    [
      "1e400",
      '{"kind":"tool.call.started","action":{"tool":"t","args":{"n":1e400}}}',
      422,
      "json-number",
      "/action/args/n",
    ],
    [
      "10,000 levels",
      `{"kind":"tool.call.started","action":{"tool":"t","args":${"[".repeat(10_000)}${"]".repeat(10_000)}}}`,
      422,
      "json-depth",
      "",
    ],
    ["not JSON", '{"kind":', 400, "json-syntax", ""],
    ["something after the value", "{} x", 400, "json-syntax", ""],
    ["an empty array", "[]", 422, "entries-refused", ""],
    ["a number", "7", 422, "invalid-field", ""],
    [
      "unknown member",
      '{"kind":"tool.call.started","knd":1,"action":{"tool":"t","args":{}}}',
      422,
      "unknown-field",
      "/knd",
    ],
    [
      "unknown field",
      '{"kind":"tool.call.started","action":{"tool":"t","args":{},"argz":1}}',
      422,
      "unknown-field",
      "/action/argz",
    ],
    [
      "missing field",
      '{"kind":"tool.call.started","action":{"tool":"t"}}',
      422,
      "missing-field",
      "/action/args",
    ],
    ["unknown kind", '{"kind":"tool.call.begun","action":{}}', 422, "unknown-kind", "/kind"],
    [
      "a kind of the service",
      '{"kind":"apikey.created","action":{"key_id":"x"}}',
      422,
      "unknown-kind",
      "/kind",
    ],
    [
      "bad id",
      '{"id":"a b","kind":"tool.call.started","action":{"tool":"t","args":{}}}',
      422,
      "invalid-field",
      "/id",
    ],
    [
      "bad time",
      '{"kind":"tool.call.started","occurred_at":"yesterday","action":{"tool":"t","args":{}}}',
      422,
      "invalid-field",
      "/occurred_at",
    ],
    [
      "unregistered client",
      `{"kind":"tool.call.started","action":{"tool":"t","args":{}},"client":{"key":"${"ab".repeat(32)}","signature":"${"cd".repeat(64)}"}}`,
      422,
      "unknown-client-key",
      "/client",
    ],
  ];

  it.each(cases)("%s: nothing is stored", async (name, body, status, code, pointer) => {
    const answer = await call(tenant.key, "POST", path("refused"), body);
    expect([name, answer.status, answer.body.type]).toEqual([name, status, `urn:runseal:problem:${code}`]);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    if (pointer !== "") expect(answer.body.pointer).toBe(pointer);
    expect(answer.body.pointer).toBeTypeOf("string");
    expect((await call(tenant.key, "GET", "/v1/principals/refused/head")).status).toBe(404);
  });

  it("bad UTF-8 costs only the entry that holds it", async () => {
    const good = JSON.stringify(entry());
    const text = `[${good},{"kind":"tool.call.started","action":{"tool":"\u0001","args":{}}}]`;
    const bytes = new TextEncoder().encode(text);
    bytes[bytes.indexOf(1)] = 0xff;
    const answer = await call(tenant.key, "POST", path("utf8"), bytes);
    expect(answer.status).toBe(207);
    expect(results(answer)[1]?.error).toMatchObject({
      type: "urn:runseal:problem:json-utf8",
      pointer: "/action/tool",
    });
  });

  it("a body over the limit is refused with and without Content-Length", async () => {
    const text = JSON.stringify(entry({ action: { tool: "t", args: "x".repeat(4 * 1024 * 1024) } }));
    expect((await call(tenant.key, "POST", path("large"), text)).status).toBe(413);
    const { exports } = await import("cloudflare:workers");
    const stream = new Blob([text]).stream();
    const response = await exports.default.fetch(`http://runseal.test${path("large")}`, {
      method: "POST",
      headers: { authorization: `Bearer ${tenant.key}`, "content-type": "application/json" },
      body: stream,
    });
    expect(response.status).toBe(413);
  });

  it("a value over 1 MiB is refused at its pointer, one of exactly 1 MiB is stored", async () => {
    const of = (length: number) => entry({ action: { tool: "t", args: "x".repeat(length - 2) } });
    expect((await call(tenant.key, "POST", path("value"), of(1024 * 1024))).status).toBe(201);
    const answer = await call(tenant.key, "POST", path("value"), of(1024 * 1024 + 1));
    expect([answer.status, answer.body.type, answer.body.pointer]).toEqual([
      422,
      "urn:runseal:problem:value-too-large",
      "/action/args",
    ]);
  });

  it("more than 1,000 entries are refused whole", async () => {
    const answer = await call(tenant.key, "POST", path("many"), entries(1001));
    expect([answer.status, answer.body.type]).toEqual([413, "urn:runseal:problem:batch-too-large"]);
  });

  it("another content type is refused", async () => {
    expect((await call(tenant.key, "POST", path("type"), "x", { "content-type": "text/plain" })).status).toBe(
      415,
    );
  });

  it("never echoes a value", async () => {
    const answer = await call(
      tenant.key,
      "POST",
      path("echo"),
      '{"kind":"s3cr3t","action":{"tool":"s3cr3t"}}',
    );
    expect(answer.text).not.toContain("s3cr3t");
  });
});
