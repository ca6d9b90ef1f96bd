import { env } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { TenantDirectory } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import type { Answer, TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import { breakIndexWrites, nextArrival, stopClock } from "./faults.ts";
import { entry, newTenant, problemOf, TestLog } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** The tenant's directory as the log sees it, with the call that lists a log replaced. */
function replaceTouch(touch: (real: () => Promise<void>) => Promise<void>): void {
  const original = env.TENANT_DIRECTORY.getByName.bind(env.TENANT_DIRECTORY);
  vi.spyOn(env.TENANT_DIRECTORY, "getByName").mockImplementation((name) => {
    const stub = original(name);
    return new Proxy(stub, {
      get: (target, property) =>
        property === "touch"
          ? (...args: Parameters<TenantDirectory["touch"]>) =>
              touch(async () => void (await target.touch(...args)))
          : Reflect.get(target, property, target),
    }) as never;
  });
}

/** A page of the whole tenant either holds the entry, or is refused: never an answer without it. */
async function seesOrRefuses(id: string): Promise<void> {
  const answer = await call(tenant.key, "GET", "/v1/entries?limit=1000");
  if (answer.status === 503) expect(problemOf(answer)).toBe("index-rebuilding");
  else expect([answer.status, answer.text.includes(`"${id}"`)]).toEqual([200, true]);
}

describe("a reader of the whole tenant", () => {
  it("sees an entry as soon as it is acknowledged", async () => {
    const logs = Array.from({ length: 8 }, (_, i) => new TestLog(tenant, `seen-${i}`));
    await Promise.all(logs.map((log) => log.append(entry({ id: `first-${log.name}` }))));
    for (const log of logs) await seesOrRefuses(`first-${log.name}`);
  });

  it("is not told that nothing happened where a flush ended between an append's arrival and its commit", async () => {
    stopClock(Date.now() + 3_600_000);
    const log = new TestLog(tenant, "settled-between");
    await log.append(entry());
    // The append arrives while the alarm's last step is on its way, and is committed after the log was taken off the list.
    let sent: Promise<Answer> | undefined;
    const arrival = nextArrival();
    const original = env.MIRROR.put.bind(env.MIRROR) as (...args: unknown[]) => Promise<R2Object | null>;
    vi.spyOn(env.MIRROR, "put").mockImplementation((async (...args: unknown[]) => {
      const put = await original(...args);
      if (sent === undefined && String(args[0]).endsWith("/checkpoint")) {
        sent = log.append(entry({ id: "between" }));
        await arrival;
      }
      return put;
    }) as never);
    await log.alarm();
    expect((await sent)?.status).toBe(201);
    const fault = breakIndexWrites("fails");
    await seesOrRefuses("between");
    fault.mend();
    await seesOrRefuses("between");
    await log.check();
  });

  it("is not told that nothing happened where the directory could not be told of the log", async () => {
    stopClock(Date.now() + 3_600_000);
    const log = new TestLog(tenant, "untold");
    let failing = 1;
    replaceTouch(async (real) => {
      if (failing-- > 0) throw new Error("Network connection lost.");
      await real();
    });
    const fault = breakIndexWrites("fails");
    expect((await log.append(entry({ id: "told-at-once" }))).status).toBe(201);
    await seesOrRefuses("told-at-once");
    fault.mend();
    await seesOrRefuses("told-at-once");
    await log.alarm();
    failing = 2;
    const untold = await log.append(entry({ id: "told-later" }));
    expect([untold.status, problemOf(untold)]).toEqual([503, "index-unavailable"]);
    // It is stored, as the answer said: another entry under its id is a conflict.
    expect((await log.append(entry({ id: "told-later" }))).status).toBe(409);
    await log.check();
  });

  it("sees the entries of a log that lost its memory while D1 was away", async () => {
    const log = new TestLog(tenant, "forgetful");
    const fault = breakIndexWrites("fails");
    await log.append(entry({ id: "kept" }));
    await log.evict();
    await seesOrRefuses("kept");
    fault.mend();
    await seesOrRefuses("kept");
  });
});
