import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import { openManagedKey } from "../../durable-objects/managed-keys.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex } from "../../shared/bytes.ts";
import { parseCheckpoint, signCheckpoint } from "../../shared/note/checkpoint.ts";
import { listed } from "./heads-support.ts";
import type { Answer, TestTenant } from "./support.ts";
import { call, entries, newKey, newTenant } from "./support.ts";

let tenant: TestTenant;
beforeEach(async () => {
  tenant = await newTenant("anchors");
});

const append = (count: number, principal = "agent") =>
  call(tenant.key, "POST", `/v1/principals/${principal}/entries`, entries(count));
const checkpointOf = async (path = "/v1/principals/agent"): Promise<string> =>
  (await call(tenant.key, "GET", `${path}/checkpoint`)).text;
const post = (body: Record<string, unknown>, key = tenant.key): Promise<Answer> =>
  call(key, "POST", "/v1/anchors", { principal: "agent", where: "ticket 4711", ...body });
const resultOf = ({ status, body }: Answer) => [status, body.result, body.reason ?? body.size];

interface Listed {
  principal: string | null;
  log_id: string;
  size: number;
  anchor: { size: number; root: string; checkpoint: string; where: string; receipt: string | null } | null;
  age_seconds: number | null;
  lag_entries: number;
}
async function anchors(key = tenant.key): Promise<{ log: Listed; logs: Listed[] }> {
  const { status, body } = await call(key, "GET", "/v1/anchors");
  expect(status).toBe(200);
  return body as never;
}
const anchorOf = async (principal = "agent") =>
  (await anchors()).logs.find((one) => one.principal === principal);

/** A head that the tenant's own key signed, whatever it says. */
async function signed(checkpoint: string, size: number, root: Uint8Array): Promise<string> {
  const { origin } = parseCheckpoint(checkpoint).checkpoint;
  const wrapped = await env.KEY_REGISTRY.getByName(tenant.id).managedKey("audit", 0);
  const signer = await openManagedKey(nativeCrypto, env.MASTER_KEY, tenant.id, wrapped);
  return signCheckpoint(nativeCrypto, origin, [signer], { origin, size, root });
}
const alarms = async (): Promise<{ name: string; detail: string }[]> => {
  const { body } = await call(tenant.key, "GET", "/v1/heads");
  return (body.log as unknown as { alarms: { name: string; detail: string }[] }).alarms;
};

describe("a head that is kept elsewhere", () => {
  it("advances the log's anchor; the same again, or an older one, leaves it as it is", async () => {
    const kept: string[] = [];
    for (const count of [1, 2, 4]) {
      await append(count);
      kept.push(await checkpointOf());
    }
    const [one, three, seven] = kept;
    expect(resultOf(await post({ checkpoint: three, receipt: "r3" }))).toEqual([200, "advanced", 3]);
    expect(resultOf(await post({ checkpoint: three, receipt: "another" }))).toEqual([200, "unchanged", 3]);
    expect(resultOf(await post({ checkpoint: one }))).toEqual([200, "unchanged", 1]);
    await listed(tenant);
    expect(await anchorOf()).toMatchObject({
      size: 7,
      lag_entries: 4,
      anchor: { size: 3, checkpoint: three, where: "ticket 4711", receipt: "r3" },
    });
    expect((await anchorOf())?.age_seconds).toBeGreaterThanOrEqual(0);
    expect(resultOf(await post({ checkpoint: seven }))).toEqual([200, "advanced", 7]);
    expect(await anchorOf()).toMatchObject({ lag_entries: 0, anchor: { size: 7, receipt: null } });
    expect(await alarms()).toEqual([]);
  });

  it("is on $system with its hash, its place and its receipt's hash, once, before it counts", async () => {
    await append(2);
    const checkpoint = await checkpointOf();
    for (let i = 0; i < 2; i++) await post({ checkpoint, receipt: "token" });
    const page = await call(tenant.key, "GET", "/v1/principals/$system/entries?kind=log.anchored");
    const found = page.body.entries as unknown as { action: Record<string, unknown> }[];
    const sha256 = async (text: string) => toHex(nativeCrypto.sha256(new TextEncoder().encode(text)));
    expect(found.map(({ action }) => action)).toEqual([
      expect.objectContaining({
        size: 2,
        where: "ticket 4711",
        checkpoint_hash: await sha256(checkpoint),
        receipt_hash: await sha256("token"),
      }),
    ]);
  });

  it("may be the tenant's log of heads'", async () => {
    await append(1);
    await listed(tenant);
    const checkpoint = await checkpointOf("/v1/log");
    const body = { principal: undefined, log: "tenant", checkpoint };
    const { size } = parseCheckpoint(checkpoint).checkpoint;
    expect(resultOf(await post(body))).toEqual([200, "advanced", size]);
    expect((await anchors()).log).toMatchObject({ principal: null, anchor: { size }, lag_entries: 0 });
    expect(resultOf(await post({ checkpoint }))).toEqual([409, "rejected", "other-log"]);
  });

  it("is rejected, with the reason, where it is not a head of the log; the last anchor stays", async () => {
    await append(3);
    await append(2, "other");
    const checkpoint = await checkpointOf();
    expect(resultOf(await post({ checkpoint }))).toEqual([200, "advanced", 3]);
    const foreign = await newTenant("foreign");
    await call(foreign.key, "POST", "/v1/principals/agent/entries", entries(9));
    const foreignHead = (await call(foreign.key, "GET", "/v1/principals/agent/checkpoint")).text;
    const { origin, root } = parseCheckpoint(checkpoint).checkpoint;
    const stranger = nativeCrypto.signer(new Uint8Array(32).fill(9));
    const forged = signCheckpoint(nativeCrypto, origin, [stranger], { origin, size: 3, root });
    for (const [bad, reason] of [
      ["no note", "malformed"],
      [await checkpointOf("/v1/principals/other"), "other-log"],
      [foreignHead, "other-log"],
      [forged, "bad-signature"],
      [checkpoint.replace("\n3\n", "\n2\n"), "bad-signature"],
      [await signed(checkpoint, 0, nativeCrypto.sha256(new Uint8Array())), "empty"],
    ] as const) {
      expect(resultOf(await post({ checkpoint: bad }))).toEqual([409, "rejected", reason]);
    }
    await listed(tenant);
    expect((await anchorOf())?.anchor).toMatchObject({ size: 3, checkpoint });
    expect(await alarms()).toEqual([]);
  });

  it.each([
    ["ahead", 9],
    ["inconsistent", 3],
    ["inconsistent", 2],
  ] as const)(
    "that contradicts the log under its own key raises an alarm that stands: %s",
    async (reason, size) => {
      await append(3);
      await listed(tenant);
      const bad = await signed(await checkpointOf(), size, new Uint8Array(32).fill(1));
      expect(resultOf(await post({ checkpoint: bad }))).toEqual([409, "rejected", reason]);
      expect(await alarms()).toMatchObject([
        { name: "anchor-contradicts", detail: expect.stringContaining(reason) },
      ]);
      expect((await anchorOf())?.anchor).toBeNull();
    },
  );

  it("under a retired key raises none: who has that key can sign anything", async () => {
    await append(3);
    const bad = await signed(await checkpointOf(), 9, new Uint8Array(32).fill(1));
    const rotation = await call(tenant.key, "POST", "/v1/registry/rotations", { role: "audit" });
    expect(rotation.status).toBeLessThan(300);
    expect(resultOf(await post({ checkpoint: bad }))).toEqual([409, "rejected", "ahead"]);
    expect(await alarms()).toEqual([]);
  });

  it("is taken once and never lowered, whatever comes at once", async () => {
    const kept: string[] = [];
    for (let i = 0; i < 4; i++) {
      await append(1);
      kept.push(await checkpointOf());
    }
    const answers = await Promise.all([...kept, ...kept].map((checkpoint) => post({ checkpoint })));
    expect(answers.map(({ status }) => status).filter((status) => status !== 200 && status !== 503)).toEqual(
      [],
    );
    expect(resultOf(await post({ checkpoint: kept[3] }))[0]).toBe(200);
    await listed(tenant);
    expect((await anchorOf())?.anchor?.size).toBe(4);
  });

  it("is for keys with the scope, and for the principals of the key; another tenant's is not found", async () => {
    await append(1);
    await append(1, "other");
    const checkpoint = await checkpointOf();
    const reader = await newKey(tenant, ["read"]);
    expect((await post({ checkpoint }, reader)).status).toBe(403);
    const narrow = await newKey(tenant, ["anchor", "read"], ["other"]);
    const foreign = await newTenant("b");
    const answers = [
      await post({ checkpoint }, narrow),
      await post({ checkpoint, principal: "nobody" }),
      await post({ checkpoint }, foreign.key),
    ];
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404]);
    await listed(tenant);
    expect((await anchors(narrow)).logs.map(({ principal }) => principal)).toEqual(["other"]);
    expect((await anchors(foreign.key)).logs.map(({ principal }) => principal)).not.toContain("agent");
  });

  it.each([
    [{ checkpoint: "" }, "/checkpoint"],
    [{ checkpoint: "x", where: "" }, "/where"],
    [{ checkpoint: "x", receipt: "r".repeat(70_000) }, "/receipt"],
    [{ checkpoint: "x", log: "tenant" }, "/principal"],
    [{ checkpoint: "x", principal: undefined }, "/principal"],
    [{ checkpoint: "x", more: 1 }, "/more"],
  ])("is refused with a pointer: %j", async (body, pointer) => {
    const answer = await post(body);
    expect([answer.status, answer.body.pointer]).toEqual([400, pointer]);
  });
});
