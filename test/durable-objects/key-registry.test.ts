import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import { signedRecordOf } from "../../durable-objects/key-registry/types.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { fromBase64, fromHex, toHex } from "../../shared/bytes.ts";
import type { Signer } from "../../shared/crypto/port.ts";
import { decodeLeaf } from "../../shared/entry/decode-leaf.ts";
import { computeLogId, formatOrigin } from "../../shared/entry/log-id.ts";
import { signEntry } from "../../shared/entry/sign.ts";
import { parseCheckpoint } from "../../shared/note/checkpoint.ts";
import { RegistryChain } from "../../shared/registry/chain.ts";
import { ROLES } from "../../shared/registry/record.ts";
import { BundleVerifier } from "../../shared/verify/bundle.ts";
import { checkCheckpoint } from "../../shared/verify/checkpoint.ts";
import {
  addKey,
  newSigner,
  newTenantWithRecovery,
  propose,
  recoverKey,
  signed,
} from "../workers/registry-support.ts";
import type { Answer, TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import { breakPuts } from "./faults.ts";
import { entries, entry, frameOf, newTenant, problemOf, resultsOf, TestLog } from "./support.ts";

let tenant: TestTenant;
beforeEach(async () => {
  tenant = await newTenant();
});

const stubOf = (of: TestTenant) => env.KEY_REGISTRY.getByName(of.id);
const rotate = (role = "audit") => call(tenant.key, "POST", "/v1/registry/rotations", { role });

/** Has every record from an epoch on take effect now, and this isolate know it. */
async function takeEffect(from: number): Promise<void> {
  await runInDurableObject(stubOf(tenant), (_instance, state) => {
    state.storage.sql.exec("UPDATE records SET effective_at = ? WHERE epoch >= ?", Date.now() - 1, from);
  });
  const { body } = await call(tenant.key, "GET", "/v1/registry");
  if (Number(body.epoch) < from) throw new Error(`epoch ${body.epoch}`);
}

async function chainOf(): Promise<RegistryChain> {
  const chain = new RegistryChain(nativeCrypto);
  for (const record of (await stubOf(tenant).state()).records) chain.add(signedRecordOf(record));
  return chain;
}

interface SeenHead {
  readonly size: number;
  readonly checkpoint: string;
  readonly epoch: number;
  readonly key: string;
}
const headOf = (answer: Answer) => answer.body.head as unknown as SeenHead;
const signatures = ({ checkpoint }: SeenHead) => parseCheckpoint(checkpoint).signatures.length;

describe("a rotation of the audit key", () => {
  it("while appends are running: every head is signed, no epoch goes back, and one head has both signatures", async () => {
    const log = new TestLog(tenant, "busy");
    const seen: SeenHead[] = [];
    seen.push(headOf(await log.append(entries(2))));
    const stub = await log.stub();
    const identity = await log.identity();
    let running = true;
    const sending = Array.from({ length: 4 }, async () => {
      while (running) {
        const answer = await log.append(entries(3));
        expect(answer.status).toBe(201);
        seen.push(headOf(answer));
      }
    });
    // An isolate that does not know of the rotation yet, and goes on with the epoch that it knows.
    const stale = (async () => {
      while (running) {
        const outcome = await stub.append({ log: identity, epoch: 0, atomic: false, ...frameOf(entries(2)) });
        if (!outcome.ok) throw new Error(outcome.detail);
        seen.push({ ...outcome.head });
      }
    })();
    const sizes: number[] = [];
    const grown = async (by: number) => {
      const target = Math.max(...seen.map(({ size }) => size)) + by;
      while (Math.max(...seen.map(({ size }) => size)) < target)
        await new Promise((resolve) => setTimeout(resolve, 5));
      sizes.push(target);
    };
    await grown(20);
    expect((await rotate()).status).toBe(201);
    await grown(20);
    expect(new Set(seen.map(({ key }) => key)).size).toBe(1);
    await takeEffect(1);
    await grown(40);
    running = false;
    await Promise.all([...sending, stale]);

    const chain = await chainOf();
    const origin = formatOrigin(identity);
    for (const head of seen) {
      const check = checkCheckpoint(nativeCrypto, chain, origin, head.checkpoint, head.epoch);
      expect(check.ok).toBe(true);
      expect(check.ok && toHex(check.key)).toBe(head.key);
    }
    const bySize = [...seen].sort((a, b) => a.size - b.size);
    expect(bySize.map(({ epoch }) => epoch)).toEqual(bySize.map(({ epoch }) => epoch).sort());
    expect(new Set(bySize.map(({ epoch }) => epoch))).toEqual(new Set([0, 1]));
    const both = new Set(seen.filter((head) => signatures(head) === 2).map(({ checkpoint }) => checkpoint));
    expect(both.size).toBe(1);
    expect(seen.find((head) => signatures(head) === 2)?.size).toBe(
      Math.min(...seen.filter(({ epoch }) => epoch === 1).map(({ size }) => size)),
    );
    const { size } = await log.check();
    expect(size).toBe(Math.max(...seen.map((head) => head.size)));
    const epochs = await leafEpochs(log);
    expect(epochs).toEqual([...epochs].sort());
    expect(new Set(epochs)).toEqual(new Set([0, 1]));
  });

  it("that waits is in no bundle, and changes nothing", async () => {
    const log = new TestLog(tenant, "waiting");
    const before = headOf(await log.append(entries(3)));
    await rotate();
    const after = headOf(await log.append(entry()));
    expect([after.epoch, after.key, signatures(after)]).toEqual([0, before.key, 1]);
    expect((await log.check()).size).toBe(4);
    const bundle = (await log.get("/export")).text;
    expect(bundle.split("\n").filter((line) => line.startsWith('{"t":"registry"'))).toHaveLength(1);
  });

  it("reaches a log that nothing is sent to: its head is signed once more, by both keys", async () => {
    const log = new TestLog(tenant, "idle");
    const before = headOf(await log.append(entries(3), "?wait=mirrored"));
    await rotate();
    await takeEffect(1);
    const { body } = await log.get("/head");
    const restated = body as unknown as SeenHead;
    expect([restated.size, restated.epoch, signatures(restated)]).toEqual([3, 1, 2]);
    expect(restated.key).not.toBe(before.key);
    expect((await log.check()).size).toBe(3);
    expect((await log.get("/head")).body.checkpoint).toBe(restated.checkpoint);
    await log.alarm();
    expect(await (await env.MIRROR.get(`${await log.prefix()}/checkpoint`))?.text()).toBe(
      restated.checkpoint,
    );
    await log.evict();
    const next = headOf(await log.append(entry()));
    expect([next.epoch, next.key, signatures(next)]).toEqual([1, restated.key, 1]);
    expect((await log.check()).size).toBe(4);
  });

  it("reaches a log that was evicted meanwhile with its next commit, and a log that slept through two", async () => {
    const log = new TestLog(tenant, "asleep");
    const first = headOf(await log.append(entries(2)));
    await rotate();
    await takeEffect(1);
    await rotate();
    await takeEffect(2);
    await log.evict();
    const answer = await log.append(entries(2));
    const head = headOf(answer);
    expect([head.size, head.epoch, signatures(head)]).toEqual([4, 2, 2]);
    expect(checkSigners(await chainOf(), formatOrigin(await log.identity()), head)).toContain(first.key);
    expect(signatures(headOf(await log.append(entry())))).toBe(1);
    expect((await log.check()).size).toBe(5);
  });

  it("takes the old key out of the log once the new one has signed", async () => {
    const log = new TestLog(tenant, "forgets");
    await log.append(entry());
    await rotate();
    await takeEffect(1);
    await log.append(entry());
    const kept = await log.inside((state) =>
      state.storage.sql.exec("SELECT epoch FROM audit_keys").toArray(),
    );
    expect(kept).toEqual([{ epoch: 1 }]);
  });

  it("by the recovery key goes without the old key where its master secret is lost", async () => {
    const { recovery, tenant: recoverable } = await newTenantWithRecovery();
    tenant = recoverable;
    const log = new TestLog(tenant, "lost");
    const before = headOf(await log.append(entries(2)));
    const lost = (state: DurableObjectState, table: string, column: string) =>
      state.storage.sql.exec(`UPDATE ${table} SET ${column} = replace(${column}, '"box":"', '"box":"00')`);
    // Of a master secret that is lost nothing opens any more, the service's own log of the tenant included.
    const system = new TestLog(tenant, "$system");
    for (const one of [log, system]) await one.inside((state) => void lost(state, "audit_keys", "key"));
    await runInDurableObject(
      stubOf(tenant),
      (_instance, state) => void lost(state, "managed_keys", "wrapped"),
    );
    await log.evict();
    await system.evict();
    expect(problemOf(await log.append(entry()))).toBe("registry-unavailable");
    expect(problemOf(await recoverKey(tenant, recovery, "log"))).toBe("registry-unavailable");
    expect((await recoverKey(tenant, recovery)).status).toBe(201);
    const head = headOf(await log.append(entry()));
    expect([head.size, head.epoch, signatures(head), head.key === before.key]).toEqual([3, 1, 1, false]);
    expect((await log.check()).size).toBe(3);
  });

  it("by the recovery key does not wait for the entry of a record before it, which only its key can sign", async () => {
    const { recovery, tenant: recoverable } = await newTenantWithRecovery();
    tenant = recoverable;
    await addKey(tenant);
    const lose = (table: string, column: string) => (state: DurableObjectState) =>
      void state.storage.sql.exec(
        `UPDATE ${table} SET ${column} = replace(${column}, '"box":"', '"box":"00')`,
      );
    const system = new TestLog(tenant, "$system");
    await system.inside(lose("audit_keys", "key"));
    await runInDurableObject(stubOf(tenant), (_instance, state) => {
      state.storage.sql.exec("UPDATE records SET stage = 1 WHERE epoch = 1");
      lose("managed_keys", "wrapped")(state);
    });
    await system.evict();
    expect(problemOf(await recoverKey(tenant, recovery, "log"))).toBe("registry-unavailable");
    expect((await recoverKey(tenant, recovery)).status).toBe(201);
    const log = new TestLog(tenant, "after-recovery");
    await log.append(entries(2));
    expect((await log.check()).size).toBe(2);
    expect((await addKey(tenant)).answer.status).toBe(201);
    const { text } = await system.get("/entries?kind=key.added");
    expect(text.match(/"kind":"key.added"/g)).toHaveLength(2);
  });

  it("makes a kept bundle no worse, and lets the old key sign no head of what comes after", async () => {
    const log = new TestLog(tenant, "kept");
    await log.append(entries(2));
    const bundle = (await log.get("/export")).text;
    const { body: old } = await log.get("/checkpoint");
    expect(old).toBe(null);
    const checkpoint = (await log.get("/checkpoint")).text;
    await rotate();
    await takeEffect(1);
    await log.append(entries(2));
    expect(verdict(bundle).verdict).toBe("intact");
    // The kept head is a prefix of what there is now.
    const now = (await log.get("/export")).text;
    expect(verdict(now, checkpoint).verdict).toBe("intact");
    // The old head as the head of now: it is too short, and its signer did not hold the role at the last leaf's epoch.
    const forged = now.replace(
      /\{"t":"checkpoint".*\n/,
      `${JSON.stringify({ t: "checkpoint", checkpoint })}\n`,
    );
    expect(verdict(forged).issues.map(({ code }) => code)).toContain("unregistered-key");
  });
});

function verdict(bundle: string, checkpoint?: string) {
  const verifier = new BundleVerifier(nativeCrypto, {
    registryId: tenant.registryId,
    verifiedBy: "test",
    ...(checkpoint === undefined ? {} : { checkpoint }),
  });
  for (const line of bundle.split("\n")) verifier.line(line);
  return verifier.finish();
}

function checkSigners(chain: RegistryChain, origin: string, head: SeenHead): string[] {
  return chain.ever(ROLES.audit).flatMap((key) => {
    const only = new Set([toHex(key)]);
    const { signatures: lines } = parseCheckpoint(head.checkpoint);
    const check = checkCheckpoint(nativeCrypto, chain, origin, head.checkpoint, null);
    return check.ok && lines.some(({ keyId }) => keyId === keyIdOf(origin, key)) ? [...only] : [];
  });
}

function keyIdOf(origin: string, key: Uint8Array): number {
  const named = new Uint8Array([...new TextEncoder().encode(`${origin}\n`), 1, ...key]);
  return new DataView(nativeCrypto.sha256(named).buffer.slice(0, 4)).getUint32(0);
}

async function leafEpochs(log: TestLog): Promise<number[]> {
  return (await log.get("/export?content=false")).text
    .split("\n")
    .filter((line) => line.startsWith('{"t":"leaf"'))
    .map((line) => decodeLeaf(fromBase64((JSON.parse(line) as { leaf: string }).leaf)).epoch);
}

/** An entry signed for the log. */
async function signedFor(log: TestLog, signer: Signer, value: unknown = entry()): Promise<string> {
  const { registryId, principal, generation } = await log.identity();
  return signEntry(JSON.stringify(value), {
    crypto: nativeCrypto,
    logId: computeLogId(nativeCrypto, fromHex(registryId), principal, generation),
    signer,
    random: (count) => crypto.getRandomValues(new Uint8Array(count)),
  });
}

describe("an entry that its client signed", () => {
  it("is stored with the signature, which verifies online and in the bundle", async () => {
    const log = new TestLog(tenant, "signed");
    await log.append(entry());
    const { signer, key } = await addKey(tenant);
    const text = await signedFor(log, signer, {
      id: "all",
      kind: "tool.call.completed",
      session: "s",
      run: "r",
      step: "1",
      call: "c",
      occurred_at: "2026-01-02T03:04:05.123456789Z",
      actor: { type: "agent", id: "a", code_hash: "ab".repeat(32) },
      action: { tool: "t" },
      authorization: { type: "user_approval", user_id: "u" },
      outcome: { status: "success", result: { n: 1.0 } },
    });
    const answer = await log.append(text);
    expect([answer.status, answer.text]).toEqual([201, expect.anything()]);
    const { body } = await log.get("/entries/2");
    expect(body.client).toEqual({ key, signature: expect.stringMatching(/^[0-9a-f]{128}$/) });
    const leaf = decodeLeaf(fromBase64(String(body.leaf)));
    expect(toHex(leaf.client?.key ?? new Uint8Array())).toBe(key);
    expect((await log.append(text)).status).toBe(200);
    expect((await log.check()).size).toBe(2);
  });

  it("is refused alone where the signature is wrong, for another entry, for another log, or by an unknown key", async () => {
    const log = new TestLog(tenant, "refused");
    const other = new TestLog(tenant, "other");
    await log.append(entry());
    await other.append(entry());
    const { signer } = await addKey(tenant);
    const { signer: witness } = await addKey(tenant, newSigner(), "witness");
    const good = await signedFor(log, signer);
    const bad = [
      good.replace(/"signature":"../, '"signature":"00').replace(/"id":"/, '"id":"x-'),
      (await signedFor(log, signer)).replace(/"run":"run-1"/, '"run":"run-2"'),
      await signedFor(other, signer),
      await signedFor(log, newSigner()),
      await signedFor(log, witness),
      (await signedFor(log, signer)).replace(/"key":"[0-9a-f]{64}"/, `"key":"${"00".repeat(32)}"`),
    ];
    const answer = await log.append(`[${[good, ...bad, JSON.stringify(entry())].join(",")}]`);
    expect(answer.status).toBe(207);
    const results = resultsOf(answer);
    expect(results.map(({ seq }) => seq ?? null)).toEqual([2, null, null, null, null, null, null, 3]);
    for (const { error } of results.slice(1, 7)) {
      expect(error).toMatchObject({ type: "urn:runseal:problem:unknown-client-key", pointer: "/client" });
    }
    expect((await log.check()).size).toBe(3);
  });

  it("can't come before its log: nobody can have signed for it", async () => {
    const log = new TestLog(tenant, "first");
    const { signer } = await addKey(tenant);
    const text = signEntry(JSON.stringify(entry()), {
      crypto: nativeCrypto,
      logId: new Uint8Array(32),
      signer,
      random: (count) => crypto.getRandomValues(new Uint8Array(count)),
    });
    const answer = await log.append(text);
    expect([answer.status, problemOf(answer)]).toEqual([422, "unknown-client-key"]);
    expect((await log.get("/head")).status).toBe(404);
  });

  it("is refused once the key is retired, and stays good where it was stored before", async () => {
    const log = new TestLog(tenant, "retired");
    await log.append(entry());
    const { signer, key } = await addKey(tenant);
    expect((await log.append(await signedFor(log, signer))).status).toBe(201);
    await call(tenant.key, "DELETE", `/v1/registry/keys/${key}`);
    const late = await log.append(await signedFor(log, signer));
    expect([late.status, problemOf(late)]).toEqual([422, "unknown-client-key"]);
    expect(resultsOf(await log.append(entry()))[0]?.seq).toBe(3);
    expect((await log.check()).size).toBe(3);
  });

  it("is checked again where the log knows of a later epoch than the isolate that read it", async () => {
    const log = new TestLog(tenant, "ahead");
    await log.append(entry());
    const { signer: leaving, key } = await addKey(tenant);
    const { signer: staying } = await addKey(tenant);
    expect((await log.append(await signedFor(log, leaving))).status).toBe(201);
    // Through another isolate: this one goes on with the registry that it has read.
    const outcome = await stubOf(tenant).retireKey(tenant.id, "test", key);
    if (!outcome.ok) throw new Error(outcome.detail);
    const stub = await log.stub();
    const { epoch } = outcome.entry;
    await stub.append({ log: await log.identity(), epoch, atomic: false, ...frameOf([entry()]) });
    const answer = await log.append(`[${await signedFor(log, leaving)},${await signedFor(log, staying)}]`);
    expect(answer.status).toBe(207);
    expect(resultsOf(answer).map(({ seq }) => seq ?? null)).toEqual([null, 4]);
    expect((await log.check()).size).toBe(4);
  });

  it("is not stored by a log under another epoch than the one at which its key was checked", async () => {
    const log = new TestLog(tenant, "under");
    await log.append(entry());
    const { answer } = await addKey(tenant);
    const epoch = Number(answer.body.epoch);
    const stub = await log.stub();
    const request = { log: await log.identity(), epoch, atomic: false };
    const refused = await stub.append({ ...request, signedEpoch: epoch - 1, ...frameOf([entry()]) });
    expect(refused).toMatchObject({ ok: false, code: "registry-unavailable", epoch });
    expect(await stub.append({ ...request, signedEpoch: epoch, ...frameOf([entry()]) })).toMatchObject({
      ok: true,
    });
    expect((await log.check()).size).toBe(2);
  });
});

describe("a record on its way into effect", () => {
  it("is told to nobody while R2 is away, and goes on by itself", async () => {
    const signer = newSigner();
    const proposal = await propose(tenant, { op: "add", role: "client", key: toHex(signer.publicKey) });
    const fault = breakPuts("fails", (key) => key.includes("/registry/"));
    const answer = await call(tenant.key, "POST", "/v1/registry/keys", signed(signer, proposal));
    expect([answer.status, problemOf(answer)]).toEqual([503, "registry-unavailable"]);
    expect((await stubOf(tenant).state()).records).toHaveLength(1);
    // Nothing else comes in its place.
    expect(problemOf(await rotate())).toBe("registry-unavailable");
    fault.mend();
    await runInDurableObject(stubOf(tenant), (instance) => instance.alarm());
    const { records } = await stubOf(tenant).state();
    expect(records.map(({ record }) => record)).toEqual([expect.anything(), proposal.record]);
    const again = await call(tenant.key, "POST", "/v1/registry/keys", signed(signer, proposal));
    expect(again.status).toBe(200);
  });

  it("whose put succeeded without an answer is the same one", async () => {
    const signer = newSigner();
    const proposal = await propose(tenant, { op: "add", role: "client", key: toHex(signer.publicKey) });
    const fault = breakPuts("fails but persisted", (key) => key.includes("/registry/"));
    expect((await call(tenant.key, "POST", "/v1/registry/keys", signed(signer, proposal))).status).toBe(503);
    fault.mend();
    expect((await call(tenant.key, "POST", "/v1/registry/keys", signed(signer, proposal))).status).toBe(200);
  });

  it("never takes the place of another one in R2", async () => {
    const key = `t/${tenant.id}/registry/1`;
    await env.MIRROR.put(key, "something else");
    const answer = (await addKey(tenant)).answer;
    expect(answer.status).toBe(503);
    expect(await (await env.MIRROR.get(key))?.text()).toBe("something else");
    expect((await stubOf(tenant).state()).records).toHaveLength(1);
  });
});
