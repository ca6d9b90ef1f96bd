import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { PrincipalLog } from "../../durable-objects/principal-log/principal-log.ts";
import { unavailable } from "../../durable-objects/principal-log/types.ts";
import { breakIndex, stopClock } from "../durable-objects/faults.ts";
import { problemOf, resultsOf, TestLog } from "../durable-objects/support.ts";
import type { Answer, TestTenant } from "./support.ts";
import { call, entries, entry, newTenant } from "./support.ts";

const operator = env.RUNSEAL_OPERATOR_TOKEN;
const MINUTE = 60_000;
const DAY = 86_400_000;
/** A time in the first second of a minute and a day, some days ahead, so that no test meets another's window. */
let start = Math.ceil(Date.now() / DAY) * DAY + 500;
let clock: ReturnType<typeof stopClock>;
let tenant: TestTenant;

beforeEach(async () => {
  start += DAY;
  clock = stopClock(start);
  tenant = await newTenant();
});
afterEach(() => {
  vi.restoreAllMocks();
});

interface Limits {
  entries_per_minute?: number | null;
  bytes_per_day?: number | null;
  principals?: number | null;
}

/** Limits hold for keys that were not asked of before; an isolate remembers the others for ten seconds. */
async function limit(limits: Limits): Promise<void> {
  const answer = await call(operator, "PUT", `/v1/tenants/${tenant.id}/limits`, limits);
  expect(answer.status).toBe(200);
}

async function keyWith(limits?: Limits): Promise<string> {
  const body = { name: "k", scopes: ["ingest", "create", "read"], principals: ["*"], limits };
  return String((await call(tenant.key, "POST", "/v1/api-keys", body)).body.api_key);
}

function append(
  key: string,
  body: unknown,
  log = "agent",
  headers: Record<string, string> = {},
): Promise<Answer> {
  return call(key, "POST", `/v1/principals/${log}/entries`, body, headers);
}

async function sizeOf(log = "agent"): Promise<number> {
  return Number((await call(tenant.key, "GET", `/v1/principals/${log}/head`)).body.size);
}

function leases(): { readonly count: () => number } {
  const original = env.TENANT_DIRECTORY.getByName.bind(env.TENANT_DIRECTORY);
  let count = 0;
  vi.spyOn(env.TENANT_DIRECTORY, "getByName").mockImplementation((name) => {
    const stub = original(name);
    return new Proxy(stub, {
      get: (target, property) => {
        if (property === "lease") count += 1;
        return Reflect.get(target, property, target);
      },
    }) as never;
  });
  return { count: () => count };
}

describe("entries a minute", () => {
  it("are counted to the entry, one by one, and again in the next minute", async () => {
    await limit({ entries_per_minute: 7 });
    const key = await keyWith();
    for (let i = 0; i < 7; i++) expect((await append(key, entry())).status).toBe(201);
    const refused = await append(key, entry());
    expect([refused.status, problemOf(refused), refused.headers.get("retry-after")]).toEqual([
      429,
      "rate-limited",
      "60",
    ]);
    expect(await sizeOf()).toBe(7);
    clock.set(start + MINUTE);
    expect((await append(key, entry())).status).toBe(201);
  });

  it("are counted to the entry where many requests and logs come at once", async () => {
    await limit({ entries_per_minute: 20 });
    const key = await keyWith();
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, i) => append(key, entry(), `crowd-${i % 3}`)),
    );
    expect(answers.filter(({ status }) => status === 201).length).toBe(20);
    expect(answers.filter(({ status }) => status === 429).length).toBe(40);
    let stored = 0;
    for (const log of ["crowd-0", "crowd-1", "crowd-2"]) stored += await sizeOf(log);
    expect(stored).toBe(20);
  });

  it("are counted over all keys of the tenant, and over each key that has a limit of its own", async () => {
    await limit({ entries_per_minute: 10 });
    const [narrow, wide] = [await keyWith({ entries_per_minute: 4 }), await keyWith()];
    expect((await append(narrow, entries(4))).status).toBe(201);
    const own = await append(narrow, entry());
    expect([own.status, own.body.detail]).toEqual([429, "more than the key's 4 entries a minute"]);
    expect((await append(wide, entries(6))).status).toBe(201);
    const all = await append(wide, entry());
    expect([all.status, all.body.detail]).toEqual([429, "more than the tenant's 10 entries a minute"]);
    expect(await sizeOf()).toBe(10);
  });

  it("a batch over the limit stores nothing of itself, and takes nothing from what fits", async () => {
    await limit({ entries_per_minute: 10 });
    const key = await keyWith();
    expect((await append(key, entries(8))).status).toBe(201);
    expect((await append(key, entries(3))).status).toBe(429);
    expect((await append(key, entries(2))).status).toBe(201);
    expect((await append(key, entries(11))).status).toBe(429);
    expect(await sizeOf()).toBe(10);
  });

  it("what is not stored does not count: refused, conflicting, seen and replayed entries", async () => {
    await limit({ entries_per_minute: 4 });
    const key = await keyWith();
    const first = entry();
    const { id: _id, ...nameless } = entry();
    await append(key, first);
    await append(key, nameless, "agent", { "idempotency-key": "k" });
    for (let i = 0; i < 5; i++) {
      expect((await append(key, first)).status).toBe(200);
      expect((await append(key, { ...first, run: "other" })).status).toBe(409);
      expect((await append(key, { ...entry(), kind: "no.such" })).status).toBe(422);
      expect((await append(key, nameless, "agent", { "idempotency-key": "k" })).status).toBe(201);
    }
    const mixed = await append(key, [first, entry(), { ...entry(), kind: "no.such" }]);
    expect(mixed.status).toBe(207);
    expect((await append(key, entry())).status).toBe(201);
    expect((await append(key, entry())).status).toBe(429);
    expect(await sizeOf()).toBe(4);
  });

  it("that are used up stop no answer to an Idempotency-Key, and the log is asked for it only then", async () => {
    await limit({ entries_per_minute: 4 });
    const key = await keyWith();
    const asked = vi.spyOn(PrincipalLog.prototype, "recall");
    const body = entries(3).map(({ id: _id, ...nameless }) => nameless);
    const send = (sent: unknown, name: string) => append(key, sent, "agent", { "idempotency-key": name });
    const first = await send(body, "k");
    expect([first.status, asked.mock.calls.length]).toEqual([201, 0]);
    // With one left, and with none: in this isolate that is known before a request is read.
    for (let i = 0; i < 3; i++) {
      const again = await send(body, "k");
      expect([again.status, again.text]).toEqual([201, first.text]);
      expect(again.headers.get("idempotency-replayed")).toBe("true");
      expect(problemOf(await send(body, "other"))).toBe("rate-limited");
      expect(problemOf(await send(entries(2), "k"))).toBe("idempotency-mismatch");
      if (i === 0) expect((await append(key, entry())).status).toBe(201);
    }
    expect(await sizeOf()).toBe(4);
  });

  it("what a log refused for a passing reason does not count", async () => {
    await limit({ entries_per_minute: 3 });
    const key = await keyWith();
    const log = new TestLog(tenant, "agent");
    expect((await append(key, entry())).status).toBe(201);
    await log.inside(({ storage }) =>
      storage.sql.exec("CREATE TRIGGER t BEFORE INSERT ON segments BEGIN SELECT RAISE(ABORT, 'fault'); END"),
    );
    for (let i = 0; i < 5; i++) expect((await append(key, entry())).status).toBe(503);
    await log.inside(({ storage }) => storage.sql.exec("DROP TRIGGER t"));
    expect((await append(key, entries(2))).status).toBe(201);
    expect((await append(key, entry())).status).toBe(429);
  });

  it("are remembered by a directory that lost its memory", async () => {
    await limit({ entries_per_minute: 5 });
    const key = await keyWith();
    expect((await append(key, entries(4))).status).toBe(201);
    const { evictDurableObject } = await import("cloudflare:test");
    await evictDurableObject(env.TENANT_DIRECTORY.getByName(tenant.id));
    // Past the lease of this isolate.
    clock.set(start + 2000);
    expect((await append(key, entries(2))).status).toBe(429);
    expect((await append(key, entry())).status).toBe(201);
  });

  it("take about one call to the directory a second, not one a request", async () => {
    await limit({ entries_per_minute: 100_000 });
    const key = await keyWith();
    await append(key, entry());
    const seen = leases();
    for (let i = 0; i < 200; i++) {
      clock.set(start + i * 10);
      expect((await append(key, entry())).status).toBe(201);
    }
    expect(seen.count()).toBeGreaterThan(0);
    expect(seen.count()).toBeLessThan(20);
    const { usage } = (await call(operator, "GET", `/v1/tenants/${tenant.id}/limits`)).body as unknown as {
      usage: { entries_this_minute: number };
    };
    // What is leased and not used is about what a second takes.
    expect(usage.entries_this_minute).toBeGreaterThanOrEqual(201);
    expect(usage.entries_this_minute).toBeLessThan(201 + 250);
  });

  it("that are leased and not used are given back with the next lease", async () => {
    await limit({ entries_per_minute: 300 });
    const key = await keyWith();
    for (let i = 0; i < 100; i++) await append(key, entry());
    clock.set(start + 5000);
    for (let i = 0; i < 200; i++) expect((await append(key, entry())).status).toBe(201);
    expect((await append(key, entry())).status).toBe(429);
  });

  it("leased in one minute are not used in the next", async () => {
    await limit({ entries_per_minute: 10 });
    const key = await keyWith();
    clock.set(start + MINUTE - 501);
    expect((await append(key, entries(3))).status).toBe(201);
    clock.set(start + MINUTE);
    for (let i = 0; i < 10; i++) expect((await append(key, entry())).status).toBe(201);
    expect((await append(key, entry())).status).toBe(429);
  });
});

describe("bytes a day", () => {
  it("are those of the requests that stored something", async () => {
    const body = JSON.stringify(entry());
    await limit({ bytes_per_day: 2 * body.length + 10 });
    const key = await keyWith();
    expect((await append(key, body)).status).toBe(201);
    expect((await append(key, body)).status).toBe(200);
    const second = JSON.stringify(entry()).slice(0, -1);
    expect((await append(key, `${second}}`)).status).toBe(201);
    const refused = await append(key, entry());
    expect([refused.status, problemOf(refused)]).toEqual([429, "quota-exceeded"]);
    expect(Number(refused.headers.get("retry-after"))).toBe(DAY / 1000);
    clock.set(start + MINUTE);
    expect((await append(key, entry())).status).toBe(429);
    // After a day the outbox would refuse as well.
    await call(tenant.key, "GET", "/v1/principals/agent/entries");
    clock.set(start + DAY);
    expect((await append(key, entry())).status).toBe(201);
  });
});

describe("principals", () => {
  it("of a tenant are counted without its own log", async () => {
    await limit({ principals: 2 });
    const key = await keyWith();
    expect((await append(key, entry(), "one")).status).toBe(201);
    expect((await call(key, "POST", "/v1/principals", { name: "two" })).status).toBe(201);
    for (const answer of [
      await append(key, entry(), "three"),
      await call(key, "POST", "/v1/principals", { name: "three" }),
    ]) {
      expect([answer.status, problemOf(answer)]).toEqual([429, "quota-exceeded"]);
      expect(answer.headers.get("retry-after")).toBe("3600");
    }
    expect((await append(key, entry(), "one")).status).toBe(201);
    expect((await call(key, "POST", "/v1/principals", { name: "two" })).status).toBe(200);
    await limit({ principals: 3 });
    expect((await append(key, entry(), "three")).status).toBe(201);
  });

  it("of a key are those that it made", async () => {
    const key = await keyWith({ principals: 1 });
    await append(tenant.key, entry(), "others");
    expect((await append(key, entry(), "others")).status).toBe(201);
    expect((await append(key, entry(), "own")).status).toBe(201);
    expect((await append(key, entry(), "more")).status).toBe(429);
    expect((await append(tenant.key, entry(), "more")).status).toBe(201);
  });
});

describe("limits", () => {
  it("are said in RateLimit-Policy and RateLimit, with what is left", async () => {
    await limit({ entries_per_minute: 100, bytes_per_day: 1_000_000 });
    const key = await keyWith({ entries_per_minute: 50 });
    const body = JSON.stringify(entries(10));
    const first = await append(key, body);
    expect(first.headers.get("ratelimit-policy")).toBe(
      '"tenant-entries";q=100;w=60;qu="entries", "tenant-bytes";q=1000000;w=86400;qu="content-bytes", "key-entries";q=50;w=60;qu="entries"',
    );
    expect(first.headers.get("ratelimit")).toBe(
      `"tenant-entries";r=90;t=60, "tenant-bytes";r=${1_000_000 - body.length};t=86400, "key-entries";r=40;t=60`,
    );
    const second = await append(key, entries(40));
    expect(second.headers.get("ratelimit")).toContain('"key-entries";r=0');
    expect((await append(key, entry())).headers.get("ratelimit")).toContain('"key-entries";r=0;t=60');
  });

  it("are not there by default: no header, no call to the directory", async () => {
    await append(tenant.key, entry());
    const seen = leases();
    const answer = await append(tenant.key, entry());
    expect(answer.status).toBe(201);
    expect([answer.headers.get("ratelimit"), answer.headers.get("ratelimit-policy")]).toEqual([null, null]);
    expect(seen.count()).toBe(0);
  });

  it("are set at a tenant's creation, once, and seen by the tenant with what is used", async () => {
    const create = (entriesPerMinute: number) =>
      call(
        operator,
        "POST",
        "/v1/tenants",
        { name: "l", limits: { entries_per_minute: entriesPerMinute } },
        {
          "idempotency-key": `limits-${start}`,
        },
      );
    const { tenant: made, api_key: key } = (await create(5)).body as unknown as {
      tenant: { id: string };
      api_key: string;
    };
    expect((await append(key, entries(3))).status).toBe(201);
    expect((await append(key, entries(3))).status).toBe(429);
    await call(operator, "PUT", `/v1/tenants/${made.id}/limits`, { entries_per_minute: 9, principals: null });
    await create(5);
    expect((await call(key, "GET", "/v1/limits")).body).toEqual({
      tenant: {
        limits: { entries_per_minute: 9, bytes_per_day: null, principals: null },
        usage: { entries_this_minute: 3, bytes_today: expect.any(Number), principals: 1 },
      },
      key: { limits: null, usage: { entries_this_minute: 0, bytes_today: 0, principals: 0 } },
    });
    await call(operator, "PUT", `/v1/tenants/${made.id}/limits`, {});
    expect((await call(key, "GET", "/v1/limits")).text).toContain('"tenant":{"limits":null');
  });

  it("are on the tenant's $system log from its creation on, each change once and before it holds", async () => {
    const creation = { name: "l", limits: { entries_per_minute: 5 } };
    const create = () =>
      call(operator, "POST", "/v1/tenants", creation, { "idempotency-key": `recorded-${start}` });
    const { tenant: made, api_key: key } = (await create()).body as unknown as {
      tenant: { id: string };
      api_key: string;
    };
    const recorded = async () => {
      const page = await call(key, "GET", "/v1/principals/$system/entries?kind=limits.changed");
      const found = page.body.entries as unknown as { action: unknown; reporter?: string }[];
      return found.map(({ action }) => action);
    };
    const path = `/v1/tenants/${made.id}/limits`;
    expect(await recorded()).toEqual([{ entries_per_minute: 5 }]);
    await create();
    const wide = { entries_per_minute: null, bytes_per_day: 7, principals: 0 };
    for (let i = 0; i < 3; i++) expect((await call(operator, "PUT", path, wide)).status).toBe(200);
    // Nothing is written for a request that uses what is allowed, or is refused.
    for (let i = 0; i < 3; i++) await append(key, entry());
    for (let i = 0; i < 2; i++) expect((await call(operator, "PUT", path, {})).status).toBe(200);
    await create();
    expect(await recorded()).toEqual([{ entries_per_minute: 5 }, { bytes_per_day: 7, principals: 0 }, {}]);

    const original = PrincipalLog.prototype.append;
    const away = vi.spyOn(PrincipalLog.prototype, "append").mockImplementation(async function (
      this: PrincipalLog,
      request,
    ) {
      if (request.log.name !== "$system") return original.call(this, request);
      return unavailable("storage-failed", "no");
    });
    expect((await call(operator, "PUT", path, { principals: 9 })).status).toBe(503);
    expect((await call(operator, "GET", path)).body.limits).toBeNull();
    away.mockRestore();
    expect((await call(operator, "PUT", path, { principals: 9 })).body.limits).toMatchObject({
      principals: 9,
    });
    expect((await recorded()).slice(3)).toEqual([{ principals: 9 }]);
  });

  it("that hold are those of the last entry, also where another change comes in between", async () => {
    const path = `/v1/tenants/${tenant.id}/limits`;
    const put = (limit: number) => call(operator, "PUT", path, { entries_per_minute: limit });
    const original = PrincipalLog.prototype.append;
    let isFirst = true;
    vi.spyOn(PrincipalLog.prototype, "append").mockImplementation(async function (
      this: PrincipalLog,
      request,
    ) {
      const outcome = await original.call(this, request);
      if (isFirst && request.ids[0]?.startsWith("limits.changed.")) {
        isFirst = false;
        // The first change is on record and does not hold yet.
        expect((await put(2)).status).toBe(200);
      }
      return outcome;
    });
    expect((await put(1)).body.limits).toMatchObject({ entries_per_minute: 1 });
    const page = await call(tenant.key, "GET", "/v1/principals/$system/entries?kind=limits.changed");
    const found = page.body.entries as unknown as { action: { entries_per_minute: number } }[];
    expect(found.map(({ action }) => action.entries_per_minute)).toEqual([1, 2, 1]);
  });

  it("of a key are on the $system log with the key", async () => {
    await keyWith({ bytes_per_day: 5, principals: null });
    await keyWith({});
    await keyWith();
    const page = await call(tenant.key, "GET", "/v1/principals/$system/entries?kind=apikey.created");
    const found = page.body.entries as unknown as { action: { limits?: unknown } }[];
    expect(found.map(({ action }) => action.limits)).toEqual([
      undefined,
      { bytes_per_day: 5 },
      undefined,
      undefined,
    ]);
  });

  it("are shown with a key, and are nobody's but the operator's and the admin's to set", async () => {
    await keyWith({ bytes_per_day: 5 });
    const list = await call(tenant.key, "GET", "/v1/api-keys");
    expect(list.text).toContain('"limits":{"entries_per_minute":null,"bytes_per_day":5,"principals":null}');
    expect((await call(tenant.key, "PUT", `/v1/tenants/${tenant.id}/limits`, {})).status).toBe(401);
    expect((await call(tenant.key, "GET", `/v1/tenants/${tenant.id}/limits`)).status).toBe(401);
    expect((await call(operator, "PUT", `/v1/tenants/${"ab".repeat(16)}/limits`, {})).status).toBe(404);
    for (const body of [{ entries_per_minute: -1 }, { entries_per_minute: 1.5 }, { entries_per_hour: 1 }]) {
      const answer = await call(operator, "PUT", `/v1/tenants/${tenant.id}/limits`, body);
      expect([answer.status, problemOf(answer)]).toEqual([400, "invalid-request"]);
    }
  });

  it("of nothing stop a tenant's appends, but never the service's own entries", async () => {
    await limit({ entries_per_minute: 0, bytes_per_day: 0, principals: 0 });
    const key = await keyWith({ entries_per_minute: 0 });
    expect((await append(key, entry())).status).toBe(429);
    const log = await call(tenant.key, "GET", "/v1/principals/$system/entries");
    expect((log.body.entries as unknown as { kind: string }[]).at(-1)?.kind).toBe("apikey.created");
  });

  it("do not stop the service's own entries where the outbox of another log would be full", async () => {
    await append(tenant.key, entry());
    breakIndex();
    await append(tenant.key, entry());
    await keyWith();
    clock.set(start + DAY + 1);
    expect(problemOf(await append(tenant.key, entry()))).toBe("outbox-full");
    const made = await call(tenant.key, "POST", "/v1/api-keys", {
      name: "late",
      scopes: ["read"],
      principals: ["*"],
    });
    expect(made.status).toBe(201);
  });
});

it("results are those of an unlimited tenant", async () => {
  await limit({ entries_per_minute: 100 });
  const key = await keyWith();
  expect(resultsOf(await append(key, entries(2))).map(({ seq, status }) => [seq, status])).toEqual([
    [1, "stored"],
    [2, "stored"],
  ]);
});
