import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { TenantDirectory } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { fromHex, toHex, utf8 } from "../../shared/bytes.ts";
import { computeLogId } from "../../shared/entry/log-id.ts";
import { signEntry } from "../../shared/entry/sign.ts";
import { canonicalJson } from "../../shared/json/canonical.ts";
import { breakIndex, stopClock } from "../durable-objects/faults.ts";
import { problemOf, TestLog } from "../durable-objects/support.ts";
import { addKey } from "./registry-support.ts";
import type { Answer, TestTenant } from "./support.ts";
import { call, entry, newKey, newTenant } from "./support.ts";

let tenant: TestTenant;
beforeEach(async () => {
  tenant = await newTenant();
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** A kind whose action has this one field, and no other. */
const kinds = (field: string, name = "made") => ({
  kinds: {
    [name]: {
      action: {
        type: "object",
        properties: { [field]: { type: "integer" } },
        required: [field],
        additionalProperties: false,
      },
    },
  },
});
const put = (body: unknown, prefix = "acme", key = tenant.key): Promise<Answer> =>
  call(key, "PUT", `/v1/extensions/${prefix}`, body);
const get = (path = "", key = tenant.key): Promise<Answer> => call(key, "GET", `/v1/extensions${path}`);
const own = (action: object, kind = "ext.acme.made") => entry({ kind, action });
const append = (body: unknown, query = "", key = tenant.key, headers = {}): Promise<Answer> =>
  call(key, "POST", `/v1/principals/agent/entries${query}`, body, headers);
const hashOf = (body: unknown) => toHex(nativeCrypto.sha256(utf8(canonicalJson(JSON.stringify(body)))));

/** The extension.declared entries, in order. */
async function recorded(of = tenant): Promise<Record<string, unknown>[]> {
  const path = "/v1/principals/$system/entries?kind=extension.declared&limit=1000";
  const { body } = await call(of.key, "GET", path);
  return (body.entries as unknown as { action: Record<string, unknown> }[]).map(({ action }) => action);
}

/** The directory with a call replaced; how often it was called. */
function replace(
  method: keyof TenantDirectory,
  by: (real: () => unknown) => unknown,
): { readonly count: () => number } {
  const original = env.TENANT_DIRECTORY.getByName.bind(env.TENANT_DIRECTORY);
  let count = 0;
  vi.spyOn(env.TENANT_DIRECTORY, "getByName").mockImplementation((name) => {
    const stub = original(name);
    return new Proxy(stub, {
      get: (target, property) => {
        const real = Reflect.get(target, property, target) as (...args: unknown[]) => unknown;
        if (property !== method) return real;
        return (...args: unknown[]) => {
          count += 1;
          return by(() => Reflect.apply(real, target, args));
        };
      },
    }) as never;
  });
  return { count: () => count };
}

/** Declares as another isolate would: this one does not hear of it. */
async function declareElsewhere(body: unknown, prefix = "acme"): Promise<void> {
  const directory = env.TENANT_DIRECTORY.getByName(tenant.id);
  const text = canonicalJson(JSON.stringify(body));
  const content = { prefix, hash: hashOf(body), text, createdAt: "2026-01-01T00:00:00Z" };
  const taken = await directory.takeExtension(content, 1);
  if ("refused" in taken) throw new Error(taken.refused);
  await directory.holdExtension(prefix, taken.version);
}

describe("a declaration", () => {
  it("is a new version for each new content, named by its hash, and on record", async () => {
    const first = await put(kinds("cents"));
    expect([first.status, first.body]).toEqual([
      201,
      { prefix: "acme", version: 1, hash: hashOf(kinds("cents")), created_at: expect.any(String) },
    ]);
    const again = await put(JSON.stringify(kinds("cents"), null, 2));
    expect([again.status, again.body]).toEqual([200, first.body]);
    const second = await put(kinds("euros"));
    expect([second.status, second.body.version]).toEqual([201, 2]);
    // What held before is declared anew: the newest version is the one that holds.
    const third = await put(kinds("cents"));
    expect([third.status, third.body.version, third.body.hash]).toEqual([201, 3, first.body.hash]);
    expect(await recorded()).toEqual(
      [first, second, third].map(({ body: { prefix, version, hash } }) => ({
        prefix,
        version,
        hash,
        by: expect.stringMatching(/^[0-9a-f]{32}$/),
      })),
    );
  });

  it("is read as it was sent, each version of it, and listed with the names of its kinds", async () => {
    const text =
      '{"kinds":{"n":{"action":{"properties":{"x":{"maximum":1.0,"type":"number"}},"type":"object"}}}}';
    await put(text, "zeta");
    await put(kinds("cents", "b.c"));
    await put(kinds("euros", "b.d"));
    expect((await get("/zeta")).text).toContain(`"declaration":${text}}`);
    expect((await get("/acme")).body).toMatchObject({ version: 2, declaration: kinds("euros", "b.d") });
    expect((await get("/acme?version=1")).body).toMatchObject({
      version: 1,
      declaration: kinds("cents", "b.c"),
    });
    expect((await get("/acme?version=3")).status).toBe(404);
    expect((await get("/nobody")).status).toBe(404);
    expect((await get("")).body.extensions).toMatchObject([
      { prefix: "acme", version: 2, kinds: ["b.d"] },
      { prefix: "zeta", version: 1, kinds: ["n"] },
    ]);
  });

  it("is told as new to one alone of those who send it at once", async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => put(kinds("cents"))));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(7).fill(200), 201]);
    expect(await recorded()).toHaveLength(1);
  });

  it("of those that are sent at once with other contents, the highest one holds", async () => {
    const names = ["a", "b", "c", "d"];
    const answers = await Promise.all(names.map((name) => put(kinds(name))));
    expect(answers.map(({ body }) => body.version).sort()).toEqual([1, 2, 3, 4]);
    const last = answers.findIndex(({ body }) => (body.version as unknown) === 4);
    expect((await get("/acme")).body).toMatchObject({ version: 4, declaration: kinds(names[last] ?? "") });
    const versions = (await recorded()).map(({ version, hash }) => [version, hash]);
    expect(new Map(versions as [number, string][]).get(4)).toBe(hashOf(kinds(names[last] ?? "")));
  });

  it("does not hold again where a higher one does, whichever of the two is done last", async () => {
    await put(kinds("a"));
    await put(kinds("b"));
    const directory = env.TENANT_DIRECTORY.getByName(tenant.id);
    expect(await directory.holdExtension("acme", 1)).toBe(false);
    expect(await directory.holdExtension("acme", 2)).toBe(false);
    expect((await get("/acme")).body.version).toBe(2);
  });

  it("holds only after it is on record", async () => {
    const system = new TestLog(tenant, "$system");
    await system.inside(({ storage }) =>
      storage.sql.exec("CREATE TRIGGER t BEFORE INSERT ON segments BEGIN SELECT RAISE(ABORT, 'fault'); END"),
    );
    const refused = await put(kinds("cents"));
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, expect.any(String)]);
    expect((await get("/acme")).status).toBe(404);
    expect((await append(own({ anything: 1 }))).status).toBe(201);
    await system.inside(({ storage }) => storage.sql.exec("DROP TRIGGER t"));
    const again = await put(kinds("cents"));
    expect([again.status, again.body.version]).toEqual([201, 1]);
    expect((await append(own({ anything: 1 }))).status).toBe(422);
    expect(await recorded()).toHaveLength(1);
  });

  it("is neither made nor read while the directory is away", async () => {
    await put(kinds("a"));
    const away = () => Promise.reject(new Error("Network connection lost."));
    for (const [method, request] of [
      ["takeExtension", () => put(kinds("b"))],
      ["holdExtension", () => put(kinds("b"))],
      ["extensions", () => get("")],
      ["extension", () => get("/acme")],
    ] as const) {
      replace(method, away);
      const answer = await request();
      expect([method, answer.status, problemOf(answer)]).toEqual([method, 503, "unavailable"]);
      vi.restoreAllMocks();
    }
    expect((await get("/acme")).body.version).toBe(1);
    const again = await put(kinds("b"));
    expect([again.status, again.body.version]).toEqual([201, 2]);
    expect(await recorded()).toHaveLength(2);
  });

  it("does not take the number of one that the log knows and the directory lost", async () => {
    await put(kinds("cents"));
    await runInDurableObject(env.TENANT_DIRECTORY.getByName(tenant.id), (_directory, { storage }) => {
      storage.sql.exec("DELETE FROM extensions");
      storage.sql.exec("DELETE FROM extension_versions");
    });
    expect((await put(kinds("euros"))).body.version).toBe(2);
    expect((await get("/acme")).body.version).toBe(2);
    expect((await recorded()).map(({ version, hash }) => [version, hash])).toEqual([
      [1, hashOf(kinds("cents"))],
      [2, hashOf(kinds("euros"))],
    ]);
  });

  it("is refused with a pointer to what is wrong, and nothing of it is kept", async () => {
    const bad = { kinds: { "a.b": { action: { type: "object", properties: { x: { type: "text" } } } } } };
    for (const [body, status, code, pointer] of [
      [bad, 422, "invalid-extension", "/kinds/a.b/action/properties/x/type"],
      [{ kinds: {}, more: 1 }, 422, "invalid-extension", "/more"],
      ['{"kinds":{},"kinds":{}}', 422, "json-duplicate-key", "/kinds"],
      ["{", 400, "json-syntax", ""],
      ["", 400, "json-syntax", ""],
      [`{"kinds":{}${" ".repeat(70_000)}}`, 413, "batch-too-large", undefined],
    ] as const) {
      const answer = await put(body);
      expect([answer.status, problemOf(answer), answer.body.pointer]).toEqual([status, code, pointer]);
    }
    for (const prefix of ["Acme", "1a", "a.b", "x".repeat(33)])
      expect((await put(kinds("c"), prefix)).status).toBe(404);
    expect((await get("")).body.extensions).toEqual([]);
    expect(await recorded()).toEqual([]);
  });

  it("is bounded in prefixes and versions", async () => {
    for (let i = 0; i < 16; i++) expect((await put(kinds("c"), `p${i}`)).status).toBe(201);
    const more = await put(kinds("c"), "p16");
    expect([more.status, problemOf(more), more.body.detail]).toEqual([
      409,
      "extension-limit",
      "no more prefixes are kept",
    ]);
    expect((await put(kinds("d"), "p0")).status).toBe(201);
    const content = { prefix: "p1", hash: "ab".repeat(32), text: "{}", createdAt: "" };
    await env.TENANT_DIRECTORY.getByName(tenant.id).takeExtension(content, 1000);
    const last = await put(kinds("e"), "p1");
    expect([last.status, last.body.detail]).toEqual([409, "no more versions are kept"]);
    // The last number is taken and not recorded yet.
    expect((await get("/p1?version=1000")).status).toBe(404);
    expect((await get("/p1")).body.version).toBe(1);
  });

  it("is made by a key with the scope policy that is for all principals", async () => {
    const narrow = await newKey(tenant, ["policy"], ["agent"]);
    expect((await put(kinds("c"), "acme", narrow)).status).toBe(403);
    const reader = await newKey(tenant, ["read", "admin"]);
    expect((await put(kinds("c"), "acme", reader)).status).toBe(403);
    expect((await put(kinds("c"), "acme", await newKey(tenant, ["policy"]))).status).toBe(201);
    expect((await get("/acme", reader)).status).toBe(200);
  });
});

describe("entries of a declared kind", () => {
  it("are checked as those of our kinds are, each for itself", async () => {
    await put(kinds("cents"));
    const answer = await append([
      own({ cents: 1 }),
      own({ cents: "1" }),
      own({ cents: 1, sents: 1 }),
      own({}),
      own({ cents: 1 }, "ext.acme.other"),
      own({ any: 1 }, "ext.undeclared.other"),
      entry(),
    ]);
    expect(answer.status).toBe(207);
    const results = answer.body.results as unknown as {
      seq?: number;
      error?: { type: string; pointer: string };
    }[];
    expect(
      results.map(({ seq, error }) => seq ?? `${error?.type.split(":").at(-1)} ${error?.pointer}`),
    ).toEqual([
      1,
      "invalid-field /action/cents",
      "unknown-field /action/sents",
      "missing-field /action/cents",
      "unknown-kind /kind",
      2,
      3,
    ]);
    const lines = [own({ cents: 1 }), own({ cents: null })].map((one) => JSON.stringify(one)).join("\n");
    expect((await append(lines, "", tenant.key, { "content-type": "application/x-ndjson" })).status).toBe(
      207,
    );
    const atomic = await append([entry(), own({ cents: "1" })], "?atomic=true");
    expect([atomic.status, problemOf(atomic), atomic.body.pointer]).toEqual([
      422,
      "batch-refused",
      "/1/action/cents",
    ]);
  });

  it("are admitted where they are as declared, and else the act is not", async () => {
    await put(kinds("cents"));
    const admit = (action: object) => call(tenant.key, "POST", "/v1/principals/agent/admit", own(action));
    expect((await admit({ cents: 1 })).body.admitted).toBe(true);
    const refused = await admit({ cents: "1" });
    expect([refused.status, problemOf(refused), refused.body.admitted, refused.body.pointer]).toEqual([
      422,
      "invalid-field",
      false,
      "/action/cents",
    ]);
  });

  it("are checked where their sender signed them", async () => {
    await append(entry());
    const { signer } = await addKey(tenant);
    const principal = await env.TENANT_DIRECTORY.getByName(tenant.id).principal("agent");
    const logId = computeLogId(nativeCrypto, fromHex(tenant.registryId), principal?.id ?? "", 1);
    const random = (count: number) => crypto.getRandomValues(new Uint8Array(count));
    const sign = (one: object) =>
      signEntry(JSON.stringify(one), { crypto: nativeCrypto, logId, signer, random });
    await declareElsewhere(kinds("cents"));
    const body = `[${[own({ cents: 1 }), entry(), own({ cents: "1" })].map(sign).join(",")}]`;
    const asked = replace("extensions", (real) => real());
    const answer = await append(body);
    const results = answer.body.results as unknown as { seq?: number; error?: { pointer: string } }[];
    expect(results.map(({ seq, error }) => seq ?? error?.pointer)).toEqual([2, 3, "/action/cents"]);
    expect(asked.count()).toBe(1);
  });

  it("are stored while D1 is away", async () => {
    await put(kinds("cents"));
    await append(own({ cents: 1 }));
    const clock = stopClock(Date.now() + 120_000);
    const fault = breakIndex();
    expect((await append(own({ cents: 1 }))).status).toBe(201);
    expect((await append(own({ cents: "1" }))).status).toBe(422);
    fault.mend();
    clock.mend();
  });

  it("answer a request that was answered before as it was, whatever is declared since", async () => {
    const key = { "idempotency-key": "k" };
    const body = { kind: "ext.acme.made", action: { any: 1 } };
    const first = await append(body, "", tenant.key, key);
    await put(kinds("cents"));
    const again = await append(body, "", tenant.key, key);
    expect([again.status, again.body.results]).toEqual([201, first.body.results]);
    expect((await append({ ...body, id: "new" })).status).toBe(422);
  });
});

describe("what an isolate knows", () => {
  it("is asked for once a minute, and for no entry of another kind", async () => {
    const clock = stopClock(Date.now());
    const start = Date.now();
    const asked = replace("extensions", (real) => real());
    for (let i = 0; i < 3; i++) expect((await append([entry(), entry()])).status).toBe(201);
    expect(asked.count()).toBe(0);
    for (let i = 0; i < 3; i++)
      expect((await append([entry(), own({ any: 1 }), own({ any: 1 })])).status).toBe(201);
    expect(asked.count()).toBe(1);
    await declareElsewhere(kinds("cents"));
    clock.set(start + 59_999);
    expect((await append(own({ any: 1 }))).status).toBe(201);
    expect(asked.count()).toBe(1);
    clock.set(start + 60_000);
    expect((await append(own({ any: 1 }))).status).toBe(422);
    expect(asked.count()).toBe(2);
  });

  it("is no older than its question: what is declared while the answer is on its way holds a minute later", async () => {
    const start = Date.now();
    const clock = stopClock(start);
    replace("extensions", async (real) => {
      const answer = await real();
      clock.set(start + 10_000);
      return answer;
    });
    expect((await append(own({ any: 1 }))).status).toBe(201);
    await declareElsewhere(kinds("cents"));
    clock.set(start + 60_000);
    expect((await append(own({ any: 1 }))).status).toBe(422);
  });

  it("holds at once where it was declared from here", async () => {
    expect((await append(own({ cents: "1" }))).status).toBe(201);
    await put(kinds("cents"));
    expect((await append(own({ cents: "1" }))).status).toBe(422);
    await put(kinds("euros"));
    expect((await append(own({ cents: 1 }))).status).toBe(422);
    expect((await append(own({ euros: 1 }))).status).toBe(201);
  });

  it("is not replaced by a guess: while the directory is away nothing of such a batch is stored", async () => {
    await put(kinds("cents"));
    await append([entry(), own({ cents: 1 })]);
    const size = async () => (await call(tenant.key, "GET", "/v1/principals/agent/head")).body.size;
    expect(await size()).toBe(2);
    const clock = stopClock(Date.now() + 5000);
    replace("extensions", () => Promise.reject(new Error("Network connection lost.")));
    // What is known is good for its minute.
    expect((await append([entry(), own({ cents: 1 })])).status).toBe(201);
    clock.set(Date.now() + 60_000);
    const refused = await append([entry(), own({ cents: 1 })]);
    expect([refused.status, problemOf(refused), refused.headers.get("retry-after")]).toEqual([
      503,
      "unavailable",
      "1",
    ]);
    const admit = await call(tenant.key, "POST", "/v1/principals/agent/admit", own({ cents: 1 }));
    expect([admit.status, admit.body.admitted]).toEqual([503, false]);
    expect(await size()).toBe(4);
    expect((await append([entry()])).status).toBe(201);
  });
});

it("a tenant's declaration is not seen by another tenant, and has no effect there", async () => {
  const other = await newTenant();
  await put(kinds("cents"));
  expect((await append(own({ cents: "1" }))).status).toBe(422);
  const theirs = (action: object) =>
    call(other.key, "POST", "/v1/principals/agent/entries", { kind: "ext.acme.made", action });
  expect((await theirs({ cents: "1" })).status).toBe(201);
  const strip = ({ status, text }: Answer) => [status, text.replace(/"request_id":"[^"]*"/, "")];
  expect(strip(await get("/acme", other.key))).toEqual(strip(await get("/none", other.key)));
  expect((await get("", other.key)).body.extensions).toEqual([]);
  const declared = await put(kinds("euros"), "acme", other.key);
  expect([declared.status, declared.body.version]).toEqual([201, 1]);
  expect((await theirs({ euros: 1 })).status).toBe(201);
  expect((await append(own({ cents: 1 }))).status).toBe(201);
});
