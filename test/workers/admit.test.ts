import { env } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { breakIndex, breakPuts } from "../durable-objects/faults.ts";
import { problemOf, TestLog } from "../durable-objects/support.ts";
import type { Answer, TestTenant } from "./support.ts";
import { call, entry, newKey, newTenant } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
});
afterEach(() => {
  vi.restoreAllMocks();
});

let acts = 0;
function act(overrides: Record<string, unknown> = {}): Record<string, unknown> {
  acts += 1;
  return {
    id: `act-${acts}`,
    kind: "host.admitted",
    run: "r1",
    call: `c-${acts}`,
    action: { call: { class: "process_spawn", command: "make" } },
    ...overrides,
  };
}

function admit(log: string, body: unknown, query = "", key = tenant.key, headers = {}): Promise<Answer> {
  return call(key, "POST", `/v1/principals/${log}/admit${query}`, body, headers);
}

function refused(answer: Answer): [number, string, unknown] {
  return [answer.status, problemOf(answer), answer.body.admitted];
}

describe("an act", () => {
  it("is admitted with the receipt of its write-ahead entry, which is in the log", async () => {
    const answer = await admit("agent", act({ id: "a" }));
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({ admitted: true, id: "a", seq: 1, status: "stored" });
    const log = new TestLog(tenant, "agent");
    const stored = await log.get("/entries/1");
    expect(stored.body).toMatchObject({ id: "a", kind: "host.admitted", hash: answer.body.hash });
    expect((answer.body.head as unknown as { hash: string }).hash).toBe(answer.body.hash);
  });

  it("is admitted again with the first receipt where its answer was lost", async () => {
    const body = act();
    const first = await admit("again", body);
    const again = await admit("again", body);
    expect([again.status, again.body.status, again.body.hash]).toEqual([200, "seen", first.body.hash]);
  });

  it("of any kind that a client may write is admitted", async () => {
    expect((await admit("any", entry())).status).toBe(201);
  });

  it("is admitted once for an Idempotency-Key, which is another one than for an append", async () => {
    const { id: _id, ...body } = act();
    const headers = { "idempotency-key": "k" };
    const first = await admit("keyed", body, "", tenant.key, headers);
    const again = await admit("keyed", body, "", tenant.key, headers);
    expect([first.status, again.status, again.text]).toEqual([201, 201, first.text]);
    expect([first, again].map((one) => one.headers.get("idempotency-replayed"))).toEqual([null, "true"]);
    const appended = await call(tenant.key, "POST", "/v1/principals/keyed/entries", body, headers);
    expect([appended.status, appended.headers.get("idempotency-replayed")]).toEqual([201, null]);
  });

  it("waits for the mirror where it is told to", async () => {
    const answer = await admit("mirrored", act(), "?wait=mirrored");
    expect([answer.status, answer.body.mirrored_size]).toEqual([201, 1]);
    breakPuts("fails", (key) => key.endsWith("/checkpoint"));
    expect(refused(await admit("mirrored", act(), "?wait=mirrored"))).toEqual([
      503,
      "mirror-unavailable",
      false,
    ]);
  });
});

describe("an act is not admitted", () => {
  it.each([
    ["an entry that can't be one", () => act({ kind: "no.such" }), 422, "unknown-kind"],
    ["a kind that the service alone writes", () => act({ kind: "key.added" }), 422, "unknown-kind"],
    ["no JSON", () => '{"id":', 400, "json-syntax"],
    ["no object", () => "null", 400, "invalid-request"],
    ["an empty body", () => " ", 400, "invalid-request"],
    ["a list of one", () => [act()], 400, "invalid-request"],
    ["a list of two", () => [act(), act()], 400, "invalid-request"],
    ["two objects", () => `${JSON.stringify(act())}\n${JSON.stringify(act())}`, 400, "json-syntax"],
  ])("for %s", async (_name, body, status, problem) => {
    await admit("bad", act({ id: "there" }));
    const answer = await admit("bad", body());
    expect([answer.status, answer.body.admitted]).toEqual([status, false]);
    if (problem !== "unknown-kind") expect(problemOf(answer)).toBe(problem);
    expect((await new TestLog(tenant, "bad").get("/head")).body.size).toBe(1);
  });

  it("under an id that another act has", async () => {
    await admit("taken", act({ id: "x" }));
    expect(refused(await admit("taken", act({ id: "x" })))).toEqual([409, "conflict", false]);
  });

  it("where NDJSON is sent, by a key without the scope, for a principal that the key is not for", async () => {
    const ndjson = { "content-type": "application/x-ndjson" };
    expect(refused(await admit("agent", JSON.stringify(act()), "", tenant.key, ndjson))).toEqual([
      415,
      "unsupported-media-type",
      false,
    ]);
    expect((await admit("agent", act(), "", await newKey(tenant, ["read"]))).status).toBe(403);
    const narrow = await newKey(tenant, ["ingest"], ["mine"]);
    expect((await admit("agent", act(), "", narrow)).status).toBe(404);
    expect((await admit("nobody", act(), "", await newKey(tenant, ["ingest"]))).status).toBe(404);
    expect((await admit("$system", act())).status).toBe(403);
  });

  it("where the entry can't be made durable, and leaves nothing behind", async () => {
    const log = new TestLog(tenant, "broken");
    await admit("broken", act());
    await log.inside(({ storage }) =>
      storage.sql.exec("CREATE TRIGGER t BEFORE INSERT ON segments BEGIN SELECT RAISE(ABORT, 'fault'); END"),
    );
    expect(refused(await admit("broken", act()))).toEqual([503, "storage-failed", false]);
    await log.inside(({ storage }) => storage.sql.exec("DROP TRIGGER t"));
    expect((await log.get("/head")).body.size).toBe(1);
  });

  it("where the log's answer is lost, although the entry may be stored", async () => {
    const body = act();
    await admit("lost", act());
    const original = env.PRINCIPAL_LOG.getByName.bind(env.PRINCIPAL_LOG);
    const spy = vi.spyOn(env.PRINCIPAL_LOG, "getByName").mockImplementation((name) => {
      const stub = original(name);
      return new Proxy(stub, {
        get: (target, property) =>
          property === "append"
            ? async (...args: Parameters<typeof target.append>) => {
                await target.append(...args);
                throw new Error("Network connection lost.");
              }
            : Reflect.get(target, property, target),
      }) as never;
    });
    expect((await admit("lost", body)).status).toBe(503);
    spy.mockRestore();
    expect((await admit("lost", body)).status).toBe(200);
  });

  it("over a limit", async () => {
    const created = await call(tenant.key, "POST", "/v1/api-keys", {
      name: "limited",
      scopes: ["ingest", "create"],
      principals: ["*"],
      limits: { entries_per_minute: 1 },
    });
    const key = String(created.body.api_key);
    expect((await admit("limited", act(), "", key)).headers.get("ratelimit")).toContain('"key-entries";r=0');
    expect(refused(await admit("limited", act(), "", key))).toEqual([429, "rate-limited", false]);
  });
});

it("acts are admitted while D1 is away", async () => {
  await admit("away", act());
  breakIndex();
  expect((await admit("away", act())).status).toBe(201);
});
