import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { forgetRegistry } from "../../workers/logs/registry.ts";
import { addKey, newTenantWithRecovery, recoverKey } from "../workers/registry-support.ts";
import type { TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import { breakGets } from "./faults.ts";
import { entries, newTenant, problemOf, TestLog } from "./support.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const TABLES = ["records", "managed_keys", "candidates"] as const;
const stubOf = (tenant: TestTenant) => env.KEY_REGISTRY.getByName(tenant.id);
const isRecord = (key: string) => key.includes("/registry/");

/** Takes a copy of the registry's storage; what it answers puts the copy back, and starts the object anew. */
async function copyRegistry(tenant: TestTenant): Promise<() => Promise<void>> {
  const copy = await runInDurableObject(stubOf(tenant), (_instance, { storage }) =>
    TABLES.map((table) => storage.sql.exec(`SELECT * FROM ${table}`).toArray()),
  );
  return async () => {
    await runInDurableObject(stubOf(tenant), (_instance, { storage }) => {
      for (const [i, table] of TABLES.entries()) {
        storage.sql.exec(`DELETE FROM ${table}`);
        for (const row of copy[i] ?? []) {
          const marks = Object.keys(row).map(() => "?");
          storage.sql.exec(`INSERT INTO ${table} VALUES (${marks.join(", ")})`, ...Object.values(row));
        }
      }
    });
    await evictDurableObject(stubOf(tenant));
  };
}

/** Rotates the audit key, in effect at once. */
async function rotate(tenant: TestTenant): Promise<void> {
  expect((await call(tenant.key, "POST", "/v1/registry/rotations", { role: "audit" })).status).toBe(201);
  await runInDurableObject(stubOf(tenant), (_instance, { storage }) => {
    storage.sql.exec("UPDATE records SET effective_at = ? WHERE epoch >= 1", Date.now() - 1);
  });
}

/** A new log of the tenant takes entries, and verifies under its registry. */
async function takesEntries(tenant: TestTenant, name: string): Promise<void> {
  const log = new TestLog(tenant, name);
  expect((await log.append(entries(2))).status).toBe(201);
  expect((await log.check()).size).toBe(2);
}

const epochOf = async (tenant: TestTenant) => (await stubOf(tenant).state()).epoch;

describe("a registry whose storage was set back", () => {
  it("has the records that were published, and goes on after them", async () => {
    const tenant = await newTenant();
    const setBack = await copyRegistry(tenant);
    await addKey(tenant);
    const before = await stubOf(tenant).state();
    await setBack();
    const { records, epoch } = await stubOf(tenant).state();
    expect(epoch).toBe(1);
    expect(records.map(({ record }) => record)).toEqual(before.records.map(({ record }) => record));
    const { answer } = await addKey(tenant);
    expect([answer.status, answer.body.epoch]).toEqual([201, 2]);
    await takesEntries(tenant, "goes-on");
  });

  it("lets no retired key sign: what it lost the key of is 503, and logs that have the key go on", async () => {
    const tenant = await newTenant();
    const setBack = await copyRegistry(tenant);
    await rotate(tenant);
    const known = new TestLog(tenant, "known");
    await known.append(entries(2));
    await setBack();
    const refused = await new TestLog(tenant, "new").append(entries(1));
    expect([refused.status, problemOf(refused)]).toEqual([503, "registry-unavailable"]);
    expect(await epochOf(tenant)).toBe(1);
    const again = await call(tenant.key, "POST", "/v1/registry/rotations", { role: "audit" });
    expect([again.status, problemOf(again)]).toEqual([503, "registry-unavailable"]);
    expect((await known.append(entries(1))).status).toBe(201);
    expect((await known.check()).size).toBe(3);
  });

  it("gets a new key by the recovery key", async () => {
    const { recovery, tenant } = await newTenantWithRecovery();
    const setBack = await copyRegistry(tenant);
    await rotate(tenant);
    await setBack();
    const log = new TestLog(tenant, "recovered");
    expect(problemOf(await log.append(entries(1)))).toBe("registry-unavailable");
    // Nothing gets before the record that recovers the audit key: it could not be recorded.
    for (const answer of [
      await call(tenant.key, "POST", "/v1/registry/rotations", { role: "log" }),
      await recoverKey(tenant, recovery, "log"),
    ])
      expect([answer.status, problemOf(answer)]).toEqual([503, "registry-unavailable"]);
    expect((await recoverKey(tenant, recovery)).status).toBe(201);
    await log.append(entries(2));
    expect((await log.check()).size).toBe(2);
  });

  it("goes on from a record that was on its way when the copy was made, and that R2 has, with one after it", async () => {
    const tenant = await newTenant();
    await addKey(tenant);
    await runInDurableObject(stubOf(tenant), (_instance, { storage }) => {
      storage.sql.exec("UPDATE records SET stage = 0, effective_at = NULL WHERE epoch = 1");
    });
    const setBack = await copyRegistry(tenant);
    await runInDurableObject(stubOf(tenant), (_instance, { storage }) => {
      storage.sql.exec("UPDATE records SET stage = 2, effective_at = 1 WHERE epoch = 1");
    });
    await addKey(tenant);
    await setBack();
    forgetRegistry(tenant.id);
    expect((await stubOf(tenant).state()).records.map(({ epoch }) => epoch)).toEqual([0, 1, 2]);
    await takesEntries(tenant, "in-between");
    expect((await addKey(tenant)).answer.status).toBe(201);
  });

  it.each([0, 7])("reads nothing of R2's object but what is signed: epoch %i", async (epoch) => {
    const tenant = await newTenant();
    const setBack = await copyRegistry(tenant);
    await addKey(tenant);
    const key = `t/${tenant.id}/registry/1`;
    const record = (await (await env.MIRROR.get(key))?.json()) as Record<string, unknown>;
    await env.MIRROR.put(key, JSON.stringify({ ...record, epoch }));
    await setBack();
    expect(await epochOf(tenant)).toBe(1);
    await takesEntries(tenant, "signed-alone");
  });

  it("hands out no key before it was compared with R2, and answers what it knows", async () => {
    const tenant = await newTenant();
    const setBack = await copyRegistry(tenant);
    await rotate(tenant);
    await setBack();
    const broken = breakGets(isRecord);
    expect(await epochOf(tenant)).toBe(0);
    const refused = await new TestLog(tenant, "away").append(entries(1));
    expect([refused.status, problemOf(refused)]).toEqual([503, "registry-unavailable"]);
    broken.mend();
    expect(await epochOf(tenant)).toBe(1);
  });

  it.each([
    ["no JSON", "nothing"],
    ["no record", "{}"],
    ["a record that nobody signed", JSON.stringify({ epoch: 1, record: "AAAA", signatures: [] })],
  ])("takes nothing over that is none: %s", async (_name, text) => {
    const tenant = await newTenant();
    await env.MIRROR.put(`t/${tenant.id}/registry/1`, text);
    await evictDurableObject(stubOf(tenant));
    await takesEntries(tenant, "junk");
    expect(await epochOf(tenant)).toBe(0);
  });
});
