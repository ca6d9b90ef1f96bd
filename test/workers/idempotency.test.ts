import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { ANSWER_LIMITS } from "../../durable-objects/principal-log/idempotency.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { fromHex } from "../../shared/bytes.ts";
import { computeLogId } from "../../shared/entry/log-id.ts";
import { signEntry } from "../../shared/entry/sign.ts";
import { stopClock } from "../durable-objects/faults.ts";
import { problemOf, resultsOf, TestLog } from "../durable-objects/support.ts";
import { addKey } from "./registry-support.ts";
import type { Answer, TestTenant } from "./support.ts";
import { call, entries, entry, newKey, newTenant } from "./support.ts";

let tenant: TestTenant;
const limits = { ...ANSWER_LIMITS };
beforeAll(async () => {
  tenant = await newTenant();
});
afterEach(() => {
  vi.restoreAllMocks();
  Object.assign(ANSWER_LIMITS, limits);
});

function send(log: string, body: unknown, key: string, query = "", caller = tenant.key): Promise<Answer> {
  return call(caller, "POST", `/v1/principals/${log}/entries${query}`, body, { "idempotency-key": key });
}

/** An entry without an id of its own: nothing but the key tells that it is the same one. */
function nameless(): Record<string, unknown> {
  const { id: _id, ...rest } = entry();
  return rest;
}

/** After a day the outbox would refuse as well. */
async function flushed(log: string): Promise<void> {
  expect((await call(tenant.key, "GET", `/v1/principals/${log}/entries`)).status).toBe(200);
}

async function sizeOf(log: string): Promise<unknown> {
  return (await call(tenant.key, "GET", `/v1/principals/${log}/head`)).body.size;
}

describe("the same key and the same request", () => {
  it("gets the first answer to the byte, and stores nothing twice", async () => {
    const body = [nameless(), { ...nameless(), kind: "no.such" }, nameless()];
    const first = await send("same", body, "k-1");
    await call(tenant.key, "POST", "/v1/principals/same/entries", entries(3));
    const again = await send("same", body, '"k-1"');
    expect(first.status).toBe(207);
    expect([again.status, again.text]).toEqual([first.status, first.text]);
    expect([first, again].map(({ headers }) => headers.get("idempotency-replayed"))).toEqual([null, "true"]);
    expect(await sizeOf("same")).toBe(5);
  });

  it.each([
    ["with proofs under the head that was answered", "?proof=true"],
    ["with the mirror waited for", "?wait=mirrored"],
    ["all or nothing", "?atomic=true"],
  ])("%s", async (_name, query) => {
    const body = [nameless(), nameless()];
    const log = `query${query.replace("?", "-").replace("=", "-")}`;
    const first = await send(log, body, "k", query);
    await call(tenant.key, "POST", `/v1/principals/${log}/entries`, entries(300));
    const again = await send(log, body, "k", query);
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(again.text).toBe(first.text);
  });

  it("holds for an answer that was a refusal by the log", async () => {
    await call(tenant.key, "POST", "/v1/principals/refused/entries", entry({ id: "taken" }));
    const other = entry({ id: "taken" });
    const first = await send("refused", other, "k");
    expect([first.status, problemOf(first)]).toEqual([409, "conflict"]);
    const again = await send("refused", other, "k");
    expect(again.body.results).toEqual(first.body.results);
    expect([first, again].map(({ headers }) => headers.get("idempotency-replayed"))).toEqual([null, "true"]);
    expect(problemOf(await send("refused", entry(), "k"))).toBe("idempotency-mismatch");
  });

  it("holds after the log lost its memory", async () => {
    const log = new TestLog(tenant, "evicted");
    const body = nameless();
    const first = await send("evicted", body, "k");
    await log.evict();
    expect((await send("evicted", body, "k")).text).toBe(first.text);
    expect(await sizeOf("evicted")).toBe(1);
  });

  it("holds where the first answer was lost after the commit", async () => {
    const log = new TestLog(tenant, "lost");
    const body = [nameless(), nameless()];
    await log.append(entry());
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
    expect((await send("lost", body, "k")).status).toBe(503);
    spy.mockRestore();
    await log.evict();
    const again = await send("lost", body, "k");
    expect([again.status, resultsOf(again).map(({ seq }) => seq)]).toEqual([201, [2, 3]]);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(await sizeOf("lost")).toBe(3);
  });

  it("is 503, never 500, where the log's storage takes nothing: an exporter keeps what it has", async () => {
    await new TestLog(tenant, "full").append(entry());
    const original = env.PRINCIPAL_LOG.getByName.bind(env.PRINCIPAL_LOG);
    const spy = vi.spyOn(env.PRINCIPAL_LOG, "getByName").mockImplementation((name) => {
      const full = async () => {
        // What the platform's output gate throws at the caller.
        throw new Error("database or disk is full: SQLITE_FULL");
      };
      return new Proxy(original(name), {
        get: (target, property) => (property === "append" ? full : Reflect.get(target, property, target)),
      }) as never;
    });
    const refused = await send("full", entry(), "k");
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    spy.mockRestore();
    expect((await send("full", entry(), "k")).status).toBe(201);
  });

  it("holds where the request could not be stored any more: its signature counts no longer", async () => {
    const { signer, key } = await addKey(tenant);
    await call(tenant.key, "POST", "/v1/principals", { name: "signed" });
    const { principal, generation, registryId } = await new TestLog(tenant, "signed").identity();
    const logId = computeLogId(nativeCrypto, fromHex(registryId, 32), principal, generation);
    const random = (count: number) => crypto.getRandomValues(new Uint8Array(count));
    const sign = () => signEntry(JSON.stringify(entry()), { crypto: nativeCrypto, logId, signer, random });
    const clock = stopClock(Date.now());
    const body = sign();
    const first = await send("signed", body, "k");
    expect(first.status).toBe(201);
    expect((await call(tenant.key, "DELETE", `/v1/registry/keys/${key}`)).status).toBe(201);
    clock.set(Date.now() + 600_000);
    await call(tenant.key, "POST", "/v1/principals/signed/entries", entry());
    const refused = await send("signed", sign(), "other");
    expect([refused.status, problemOf(refused)]).toEqual([422, "unknown-client-key"]);
    expect((await send("signed", body, "k")).text).toBe(first.text);
    expect(problemOf(await send("signed", sign(), "k"))).toBe("idempotency-mismatch");
  });

  it("is not remembered where the transaction threw: the next attempt stores it", async () => {
    const log = new TestLog(tenant, "aborted");
    await log.append(entry());
    await log.inside(({ storage }) =>
      storage.sql.exec("CREATE TRIGGER t BEFORE INSERT ON answers BEGIN SELECT RAISE(ABORT, 'fault'); END"),
    );
    const body = nameless();
    expect((await send("aborted", body, "k")).status).toBe(503);
    expect(await sizeOf("aborted")).toBe(1);
    await log.inside(({ storage }) => storage.sql.exec("DROP TRIGGER t"));
    expect((await send("aborted", body, "k")).status).toBe(201);
    expect(await sizeOf("aborted")).toBe(2);
  });

  it("sent many times at once stores once: the others wait their turn or get the same answer", async () => {
    const body = nameless();
    const answers = await Promise.all(Array.from({ length: 30 }, () => send("crowd", body, "k")));
    const good = answers.filter(({ status }) => status === 201);
    const busy = answers.filter(({ status }) => status === 409);
    expect(good.length + busy.length).toBe(30);
    expect(new Set(good.map(({ text }) => text)).size).toBe(1);
    for (const one of busy) {
      expect([problemOf(one), one.headers.get("retry-after")]).toEqual(["idempotency-in-flight", "1"]);
    }
    expect(busy.length).toBeGreaterThan(0);
    expect(await sizeOf("crowd")).toBe(1);
    expect((await send("crowd", body, "k")).text).toBe(good[0]?.text);
  });
});

describe("the same key and another request", () => {
  it("is refused: another body, query or form", async () => {
    const body = nameless();
    await send("other", body, "k");
    for (const answer of [
      await send("other", nameless(), "k"),
      await send("other", body, "k", "?atomic=true"),
      await call(tenant.key, "POST", "/v1/principals/other/entries", JSON.stringify(body), {
        "idempotency-key": "k",
        "content-type": "application/x-ndjson",
      }),
    ]) {
      expect([answer.status, problemOf(answer)]).toEqual([422, "idempotency-mismatch"]);
      expect(answer.headers.get("retry-after")).toBeNull();
    }
    expect(await sizeOf("other")).toBe(1);
  });

  it("is another key on another principal and in another tenant", async () => {
    const other = await newTenant("other");
    const body = nameless();
    const first = await send("agent-a", body, "k");
    expect((await send("agent-b", nameless(), "k")).status).toBe(201);
    const foreign = await send("agent-a", body, "k", "", other.key);
    expect([foreign.status, foreign.headers.get("idempotency-replayed")]).toEqual([201, null]);
    expect(foreign.text).not.toBe(first.text);
  });

  it("does not tell a key without read what differs", async () => {
    const writer = await newKey(tenant, ["ingest"]);
    await call(tenant.key, "POST", "/v1/principals/agent-c/entries", entry({ id: "x" }));
    const conflicting = [entry({ id: "x" }), entry()];
    const told = await send("agent-c", conflicting, "k");
    const untold = await send("agent-c", conflicting, "k", "", writer);
    expect(told.text).toContain("differs");
    expect(untold.text).not.toContain("differs");
  });
});

describe("a key", () => {
  it.each([
    ["empty", ""],
    ["empty, quoted", '""'],
    ["too long", "k".repeat(256)],
    ["with a space", "a b"],
    ["sent twice", "a, b"],
    ["not closed", '"a'],
    ["with a bad escape", '"a\\n"'],
    ["with bytes beyond ASCII", "clé"],
  ])("that is malformed is refused: %s", async (_name, key) => {
    const answer = await send("malformed", nameless(), key);
    expect([answer.status, problemOf(answer)]).toEqual([400, "invalid-request"]);
  });

  it("is the same quoted and raw, escapes undone", async () => {
    const body = nameless();
    const first = await send("quoted", body, '"a\\"b\\\\c"');
    expect(first.status).toBe(201);
    expect((await send("quoted", body, '"a\\"b\\\\c"')).text).toBe(first.text);
    expect((await send("quoted", body, "k".repeat(255))).status).toBe(201);
  });

  it("is forgotten after its day, and not before", async () => {
    const start = Date.now();
    const clock = stopClock(start);
    const body = nameless();
    const first = await send("day", body, "k");
    clock.set(start + ANSWER_LIMITS.keptMs - 1);
    expect((await send("day", body, "k")).text).toBe(first.text);
    await flushed("day");
    clock.set(start + ANSWER_LIMITS.keptMs);
    const later = await send("day", nameless(), "k");
    expect([later.status, resultsOf(later)[0]?.seq]).toEqual([201, 2]);
    const rows = await new TestLog(tenant, "day").inside(({ storage }) =>
      storage.sql.exec("SELECT count(*) AS rows FROM answers").toArray(),
    );
    expect(rows).toEqual([{ rows: 1 }]);
  });

  it.each([
    ["count", { answers: 3 }],
    ["bytes", { bytes: 2000 }],
  ])("beyond the bound in %s is refused, and none is forgotten early for it", async (name, bound) => {
    const start = Date.now();
    const clock = stopClock(start);
    Object.assign(ANSWER_LIMITS, bound);
    const log = `full-${name}`;
    const bodies = Array.from({ length: 3 }, nameless);
    const firsts: Answer[] = [];
    for (const [i, body] of bodies.entries()) firsts.push(await send(log, body, `k-${i}`));
    const refused = await send(log, nameless(), "k-new");
    expect([refused.status, problemOf(refused), refused.headers.get("retry-after")]).toEqual([
      503,
      "idempotency-full",
      "3600",
    ]);
    for (const [i, body] of bodies.entries()) {
      expect((await send(log, body, `k-${i}`)).text).toBe(firsts[i]?.text);
    }
    expect((await call(tenant.key, "POST", `/v1/principals/${log}/entries`, entry())).status).toBe(201);
    await flushed(log);
    clock.set(start + ANSWER_LIMITS.keptMs);
    expect((await send(log, nameless(), "k-new")).status).toBe(201);
  });
});

it("a request without a key writes no row for it", async () => {
  await call(tenant.key, "POST", "/v1/principals/plain/entries", entry());
  const stub = await new TestLog(tenant, "plain").stub();
  const rows = await runInDurableObject(stub, (_log, { storage }) =>
    storage.sql.exec("SELECT count(*) AS rows FROM answers").toArray(),
  );
  expect(rows).toEqual([{ rows: 0 }]);
});
