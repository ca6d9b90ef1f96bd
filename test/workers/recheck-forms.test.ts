/**
 * The forms of a single run's re-check over HTTP, its gates, and the range that it verifies first.
 */
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { nativeCrypto } from "../../native/crypto.ts";
import { RECHECK_FORMATS } from "../../shared/recheck/format-report.ts";
import { contentHash } from "../../shared/recheck/hash.ts";
import { readReport } from "../../shared/recheck/report-read.ts";
import { reportText } from "../../shared/recheck/text.ts";
import type { Answer, TestTenant } from "./support.ts";
import { call, newTenant } from "./support.ts";

const SPEC = '{"name":"pay","side_effect":"remote_mutation"}';
const SPEC_HASH = contentHash(nativeCrypto, SPEC);
const BIG = "12345678901234567890";

const LAX = { rules: { side_effects: { remote_mutation: "allow" } } };
const STRICT = { rules: { side_effects: { remote_mutation: "deny" } } };
const ASKING = { rules: { side_effects: { remote_mutation: "require_approval" } } };

const VIEW = {
  status: "RUNNING",
  step_count: 1,
  model_calls: 0,
  input_tokens: 0,
  output_tokens: 0,
  cached_input_tokens: 0,
  estimated_cost_micros: 0,
  active_ms: 0,
  steps: 0,
  approvals: 0,
};

/** A run of one evaluation that allowed, as text: its argument is a number that no double holds. */
function runOf(run: string): string {
  const evaluation = JSON.stringify({
    kind: "policy.evaluated",
    run,
    step: "s1",
    action: {
      tool: "pay",
      args: "ARGS",
      spec_hash: SPEC_HASH,
      policy_id: "recorded/v1",
      decision: { outcome: "allow", reason: "side effect remote_mutation is allow by policy" },
      view: VIEW,
    },
  }).replace('"ARGS"', `{"cents":${BIG}}`);
  return [
    JSON.stringify({ kind: "run.created", run, action: { goal: "g", limits: {}, tools: [SPEC_HASH] } }),
    evaluation,
    JSON.stringify({ kind: "run.completed", run, action: {} }),
  ].join("\n");
}

let tenant: TestTenant;

async function send(principal: string, lines: string): Promise<void> {
  const { status, text } = await call(tenant.key, "POST", `/v1/principals/${principal}/entries`, lines, {
    "content-type": "application/x-ndjson",
  });
  expect([status, text]).toEqual([201, text]);
}

const recheck = (query: string, policy: unknown = LAX, run = "r1", principal = "bot"): Promise<Answer> =>
  call(tenant.key, "POST", `/v1/principals/${principal}/runs/${run}/recheck${query}`, { policy });

beforeAll(async () => {
  tenant = await newTenant();
  expect((await call(tenant.key, "PUT", `/v1/tools/${SPEC_HASH}`, SPEC)).status).toBe(200);
  await send("bot", runOf("r1"));
  await send("bot", JSON.stringify({ kind: "run.created", run: "empty", action: { goal: "g" } }));
});

describe("a long run", () => {
  it("of 1,000 evaluations is re-checked in one request, each of them asked", async () => {
    const [created = "", evaluation = "", completed = ""] = runOf("long").split("\n");
    const evaluations = Array.from({ length: 1000 }, (_, i) => evaluation.replace('"s1"', `"s${i}"`));
    await send("bot", [created, ...evaluations.slice(0, 500)].join("\n"));
    await send("bot", [...evaluations.slice(500), completed].join("\n"));
    const same = await recheck("?gate=strict", LAX, "long");
    expect([same.status, same.body.rechecked, same.body.differences]).toEqual([200, 1000, 0]);
    const strict = await recheck("", STRICT, "long");
    expect([strict.status, strict.body.rechecked, strict.body.differences]).toEqual([200, 1000, 1000]);
  });
});

describe("the forms of a report", () => {
  it.each([
    ["json", "application/json"],
    ["text", "text/plain; charset=utf-8"],
    ["junit", "application/xml; charset=utf-8"],
    ["markdown", "text/markdown; charset=utf-8"],
  ])("%s, and 409 with the report where the gate fails", async (format, type) => {
    const good = await recheck(`?format=${format}&gate=strict`);
    expect([good.status, good.headers.get("content-type")]).toEqual([200, type]);
    const bad = await recheck(`?format=${format}&gate=strict`, STRICT);
    const badType = format === "json" ? "application/problem+json" : type;
    expect([bad.status, bad.headers.get("content-type")]).toEqual([409, badType]);
    expect(bad.text).toContain("deny");
    expect((await recheck(`?format=${format}`, STRICT)).status).toBe(200);
    expect(bad.headers.get("x-request-id")).toBeTruthy();
  });

  it("text is the pinned text of the JSON", async () => {
    const json = await recheck("", STRICT);
    const text = await recheck("?format=text", STRICT);
    expect(text.text).toBe(reportText(readReport(json.text)));
  });

  it("a failed gate is a problem document with the report in it, to the digit", async () => {
    const { status, body, text, headers } = await recheck("?gate=proxy", ASKING);
    expect([status, body.type, body.title]).toEqual([
      409,
      "urn:runseal:problem:gate-failed",
      "The recheck's gate failed",
    ]);
    expect(body.report).toMatchObject({ run_id: "r1", same: false, differences: 1, gate: { passed: false } });
    expect(text).toContain(`"capability":{"args":{"cents":${BIG}},"tool":"pay"}`);
    expect(body.request_id).toBe(headers.get("x-request-id"));
  });

  it("junit and markdown name principal, run and head", async () => {
    const head = (await call(tenant.key, "GET", "/v1/principals/bot/head")).body;
    const junit = await recheck("?format=junit&verified=true");
    expect(junit.text).toContain('<testsuite name="bot/r1" tests="1"');
    expect(junit.text).toContain(`<property name="head" value="${head.size}:${head.root}"/>`);
    expect(junit.text).toContain('<property name="verified" value="intact"/>');
    const markdown = await recheck("?format=markdown");
    expect(markdown.text).toContain("Run <code>bot</code> <code>r1</code>, COMPLETED");
    expect(markdown.text).toContain(`root <code>${head.root}</code>`);
  });

  it("is refused in another form, or with another gate", async () => {
    for (const [query, pointer] of [
      ["?format=xml", "?format"],
      ["?gate=none", "?gate"],
      ["?verified=yes", "?verified"],
    ] as const) {
      const { status, body } = await recheck(query);
      expect([status, body.pointer]).toEqual([400, pointer]);
    }
  });
});

describe("a gate", () => {
  it.each(RECHECK_FORMATS)("as %s is not passed by checking nothing", async (format) => {
    for (const gate of ["strict", "proxy"]) {
      const nothing = await recheck(`?gate=${gate}&format=${format}`, LAX, "empty");
      expect(nothing.status).toBe(409);
      expect((await recheck(`?gate=${gate}&format=${format}`, LAX, "nope")).status).toBe(404);
      expect((await recheck(`?gate=${gate}&format=${format}`, LAX, "r1", "nobody")).status).toBe(404);
    }
  });
});

describe("a verified re-check", () => {
  const alter = async (sql: string, principal: string): Promise<void> => {
    const { meta } = await env.DB.prepare(
      `UPDATE entries SET ${sql} AND log = (SELECT log FROM logs WHERE tenant = ? AND name = ?)`,
    )
      .bind(tenant.id, principal)
      .run();
    expect(meta.changes).toBe(1);
  };

  it("says that the range is intact, and what it is", async () => {
    const { status, body } = await recheck("?verified=true&gate=strict");
    expect(status).toBe(200);
    expect(body.verified).toEqual({ verdict: "intact", from: 1, to: 3, checked: 3 });
    expect((await recheck("")).body.verified).toBeUndefined();
  });

  it("passes no gate where the record was altered, though all is the same", async () => {
    await send("altered", runOf("r1"));
    expect((await recheck("?gate=strict", STRICT, "r1", "altered")).status).toBe(409);
    // Whoever makes the record fit the stricter policy is found.
    await alter(
      `content = replace(content, '"outcome":"allow"', '"outcome":"deny"') WHERE seq = 2`,
      "altered",
    );
    expect((await recheck("?gate=strict", STRICT, "r1", "altered")).status).toBe(200);
    for (const format of RECHECK_FORMATS) {
      const answer = await recheck(`?gate=strict&verified=true&format=${format}`, STRICT, "r1", "altered");
      expect([format, answer.status]).toEqual([format, 409]);
    }
    const { status, body } = await recheck("?verified=true", STRICT, "r1", "altered");
    expect([status, body.same]).toEqual([200, true]);
    expect(body.verified).toMatchObject({
      verdict: "broken",
      from: 1,
      break: { seq: 2, verdict: "altered" },
    });
    const text = await recheck("?verified=true&format=text", STRICT, "r1", "altered");
    expect(text.text).toContain("NOT VERIFIED");
  });

  it("passes no gate where the record can't be read any more", async () => {
    await send("cut", runOf("r1"));
    await call(tenant.key, "GET", "/v1/principals/cut/entries");
    await alter("leaf = 'AAAA' WHERE seq = 2", "cut");
    const gated = await recheck("?verified=true&gate=proxy", LAX, "r1", "cut");
    expect([gated.status, gated.body.type]).toEqual([409, "urn:runseal:problem:gate-failed"]);
    expect(gated.body.verified).toMatchObject({ verdict: "broken" });
    const plain = await recheck("?verified=true", LAX, "r1", "cut");
    expect([plain.status, plain.body.type]).toEqual([503, "urn:runseal:problem:index-conflict"]);
    expect(plain.body.verified).toMatchObject({ verdict: "broken" });
  });

  it("looks at the run's own range", async () => {
    await send("long", [runOf("before"), runOf("r1"), runOf("after")].join("\n"));
    await call(tenant.key, "GET", "/v1/principals/long/entries");
    await alter(`content = replace(content, 'allow', 'deny') WHERE seq = 8`, "long");
    expect((await recheck("?verified=true", LAX, "r1", "long")).body.verified).toEqual({
      verdict: "intact",
      from: 4,
      to: 6,
      checked: 3,
    });
    expect((await recheck("?verified=true", LAX, "after", "long")).body.verified).toMatchObject({
      verdict: "broken",
      from: 7,
    });
  });

  it("of a run that is not there is a 404", async () => {
    expect((await recheck("?verified=true&gate=strict", LAX, "nope")).status).toBe(404);
  });
});
