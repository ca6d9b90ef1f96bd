import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { nativeCrypto } from "../../native/crypto.ts";
import { fromBase64, toBase64, toHex } from "../../shared/bytes.ts";
import { decodeRecord, encodeRecord, OPS, ROLES } from "../../shared/registry/record.ts";
import { signedMessage } from "../../shared/signing.ts";
import type { ProposalBody } from "./registry-support.ts";
import { addKey, newSigner, newTenantWithRecovery, propose, recoverKey, signed } from "./registry-support.ts";
import type { Answer, TestTenant } from "./support.ts";
import { call, newKey, newTenant } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
});

const problem = (answer: Answer) => String(answer.body?.type ?? "").replace("urn:runseal:problem:", "");

interface Registry {
  epoch: number;
  registry_id: string;
  records: {
    epoch: number;
    record: string;
    signatures: { key: string; signature: string }[];
    effective_at: string;
  }[];
}
const registry = async (of: TestTenant): Promise<Registry> =>
  (await call(of.key, "GET", "/v1/registry")).body as unknown as Registry;
const last = async (of: TestTenant) =>
  decodeRecord(fromBase64((await registry(of)).records.at(-1)?.record ?? ""));

describe("adding a key", () => {
  it("takes a key of each open role, which signed the record, and the audit key with it", async () => {
    const before = await registry(tenant);
    for (const [i, role] of (["client", "witness", "astrid_audit", "astrid_v1"] as const).entries()) {
      const { key, answer } = await addKey(tenant, newSigner(), role);
      expect(answer.status).toBe(201);
      const record = await last(tenant);
      expect(record).toMatchObject({ epoch: before.epoch + i + 1, op: OPS.add, retire: [] });
      expect(record.add.map((binding) => [binding.role, toHex(binding.key)])).toEqual([[ROLES[role], key]]);
      const signers = (answer.body.signatures as unknown as { key: string }[]).map((one) => one.key);
      expect(signers).toHaveLength(2);
      expect(signers).toContain(key);
    }
    expect((await registry(tenant)).epoch).toBe(before.epoch + 4);
  });

  it("publishes the record in R2 and D1, and tells of it on the system log", async () => {
    const { key, answer } = await addKey(tenant);
    const { epoch, record, signatures } = answer.body as unknown as Registry["records"][0];
    const object = await env.MIRROR.get(`t/${tenant.id}/registry/${epoch}`);
    expect(JSON.parse((await object?.text()) ?? "")).toEqual({ epoch, record, signatures });
    const row = await env.DB.prepare("SELECT record FROM registry_records WHERE tenant = ? AND epoch = ?")
      .bind(tenant.id, epoch)
      .first();
    expect(row).toEqual({ record });
    const page = await call(tenant.key, "GET", "/v1/principals/$system/entries?limit=500");
    const entries = page.body.entries as unknown as { kind: string; action: Record<string, unknown> }[];
    const hash = toHex(nativeCrypto.sha256(fromBase64(record)));
    expect(entries.filter(({ kind }) => kind === "key.added").at(-1)?.action).toMatchObject({
      epoch,
      record_hash: hash,
      role: "client",
      key,
    });
    expect(entries[0]).toMatchObject({
      kind: "key.created",
      action: { epoch: 0, record_hash: tenant.registryId },
    });
  });

  it("answers the same record sent again with the first answer", async () => {
    const signer = newSigner();
    const proposal = await propose(tenant, { op: "add", role: "client", key: toHex(signer.publicKey) });
    const first = await call(tenant.key, "POST", "/v1/registry/keys", signed(signer, proposal));
    const again = await call(tenant.key, "POST", "/v1/registry/keys", signed(signer, proposal));
    expect([first.status, again.status]).toEqual([201, 200]);
    expect(again.body).toEqual(first.body);
  });

  it("refuses a signature by another key, and a record that was changed after it was signed", async () => {
    const signer = newSigner();
    const proposal = await propose(tenant, { op: "add", role: "client", key: toHex(signer.publicKey) });
    const before = await registry(tenant);
    const wrong = await call(tenant.key, "POST", "/v1/registry/keys", signed(newSigner(), proposal));
    expect([wrong.status, problem(wrong), wrong.body.pointer]).toEqual([422, "invalid-record", "/signature"]);
    const decoded = decodeRecord(fromBase64(proposal.record));
    const add = decoded.add.map(({ key }) => ({ role: ROLES.witness, key }));
    const changed = { ...signed(signer, proposal), record: toBase64(encodeRecord({ ...decoded, add })) };
    const other = await call(tenant.key, "POST", "/v1/registry/keys", changed);
    expect([other.status, other.body.pointer]).toEqual([422, "/signature"]);
    expect(await registry(tenant)).toEqual(before);
  });

  it("refuses what is no record, and a record of another operation, role or time", async () => {
    const signer = newSigner();
    const proposal = await propose(tenant, { op: "add", role: "client", key: toHex(signer.publicKey) });
    const decoded = decodeRecord(fromBase64(proposal.record));
    const send = (record: Uint8Array) => {
      const signature = toHex(signer.sign(signedMessage("registry", nativeCrypto.sha256(record))));
      return call(tenant.key, "POST", "/v1/registry/keys", { record: toBase64(record), signature });
    };
    const rotate = { ...decoded, op: OPS.rotate, retire: decoded.add };
    const forged = [
      new Uint8Array([1, 2, 3]),
      encodeRecord({ ...decoded, op: OPS.retire }),
      encodeRecord(rotate),
      encodeRecord({ ...decoded, add: decoded.add.map(({ key }) => ({ role: ROLES.audit, key })) }),
      encodeRecord({ ...decoded, add: decoded.add.map(({ key }) => ({ role: ROLES.recovery, key })) }),
      encodeRecord({ ...decoded, time: decoded.time + 90_000_000_000_000n }),
      encodeRecord({ ...decoded, retire: [{ role: ROLES.audit, key: signer.publicKey }] }),
    ];
    for (const record of forged) {
      const answer = await send(record);
      expect([answer.status, problem(answer)]).toEqual([422, "invalid-record"]);
    }
    expect((await send(fromBase64(proposal.record))).status).toBe(201);
  });

  it("refuses a key that is registered, or was", async () => {
    const { signer, key } = await addKey(tenant);
    const again = await call(tenant.key, "POST", "/v1/registry/proposals", {
      op: "add",
      role: "client",
      key,
    });
    expect([again.status, problem(again)]).toEqual([409, "key-registered"]);
    await call(tenant.key, "DELETE", `/v1/registry/keys/${key}`);
    const after = await call(tenant.key, "POST", "/v1/registry/proposals", {
      op: "add",
      role: "witness",
      key,
    });
    expect([after.status, problem(after)]).toEqual([409, "key-registered"]);
    // Nor does it help to make the record oneself.
    const fresh = decodeRecord(
      fromBase64(
        (await propose(tenant, { op: "add", role: "client", key: toHex(newSigner().publicKey) })).record,
      ),
    );
    const record = encodeRecord({ ...fresh, add: [{ role: ROLES.client, key: signer.publicKey }] });
    const signature = toHex(signer.sign(signedMessage("registry", nativeCrypto.sha256(record))));
    const forced = await call(tenant.key, "POST", "/v1/registry/keys", {
      record: toBase64(record),
      signature,
    });
    expect([forced.status, problem(forced)]).toEqual([409, "key-registered"]);
  });

  it("refuses keys of small order, in the proposal and in a record made without one", async () => {
    for (const key of [
      "00".repeat(32),
      `01${"00".repeat(31)}`,
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    ]) {
      const answer = await call(tenant.key, "POST", "/v1/registry/proposals", {
        op: "add",
        role: "client",
        key,
      });
      expect([answer.status, problem(answer), answer.body.pointer]).toEqual([422, "invalid-record", "/key"]);
    }
    const fresh = decodeRecord(
      fromBase64(
        (await propose(tenant, { op: "add", role: "client", key: toHex(newSigner().publicKey) })).record,
      ),
    );
    const record = encodeRecord({ ...fresh, add: [{ role: ROLES.client, key: new Uint8Array(32) }] });
    const answer = await call(tenant.key, "POST", "/v1/registry/keys", {
      record: toBase64(record),
      signature: "00".repeat(64),
    });
    expect([answer.status, answer.body.detail]).toEqual([422, "the key is of small order"]);
  });

  it("refuses a proposal that another record came before", async () => {
    const signer = newSigner();
    const proposal = await propose(tenant, { op: "add", role: "client", key: toHex(signer.publicKey) });
    await addKey(tenant);
    const late = await call(tenant.key, "POST", "/v1/registry/keys", signed(signer, proposal));
    expect([late.status, problem(late)]).toEqual([409, "registry-moved"]);
  });

  it("takes one of many proposals of the same epoch, however many are sent at once", async () => {
    const signers = Array.from({ length: 8 }, newSigner);
    const proposals = await Promise.all(
      signers.map((signer) => propose(tenant, { op: "add", role: "client", key: toHex(signer.publicKey) })),
    );
    const before = await registry(tenant);
    const answers = await Promise.all(
      signers.map((signer, i) =>
        call(tenant.key, "POST", "/v1/registry/keys", signed(signer, proposals[i] as ProposalBody)),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([
      201,
      ...Array.from({ length: 7 }, () => 409),
    ]);
    expect((await registry(tenant)).records).toHaveLength(before.records.length + 1);
  });

  it("is for keys with the scope `keys` alone, and reaches no other tenant", async () => {
    const weak = await newKey(tenant, ["read", "admin", "ingest", "policy"]);
    const body = { op: "add", role: "client", key: toHex(newSigner().publicKey) };
    const answers = [
      await call(weak, "POST", "/v1/registry/proposals", body),
      await call(weak, "POST", "/v1/registry/keys", { record: "", signature: "00".repeat(64) }),
      await call(weak, "DELETE", `/v1/registry/keys/${"ab".repeat(32)}`),
      await call(weak, "POST", "/v1/registry/rotations", { role: "audit" }),
      await call(weak, "POST", "/v1/registry/recoveries", { record: "", signature: "00".repeat(64) }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 403, 403]);
    const other = await newTenant();
    const { key } = await addKey(other);
    expect((await call(tenant.key, "DELETE", `/v1/registry/keys/${key}`)).status).toBe(404);
    const signer = newSigner();
    const theirs = await propose(other, { op: "add", role: "client", key: toHex(signer.publicKey) });
    const crossed = await call(tenant.key, "POST", "/v1/registry/keys", signed(signer, theirs));
    expect([crossed.status, problem(crossed)]).toEqual([409, "registry-moved"]);
  });
});

describe("retiring a key", () => {
  it("takes its role away, once; again gives the same record", async () => {
    const { key } = await addKey(tenant);
    const first = await call(tenant.key, "DELETE", `/v1/registry/keys/${key}`);
    expect(first.status).toBe(201);
    const record = await last(tenant);
    expect(record.op).toBe(OPS.retire);
    expect(record.retire.map((binding) => toHex(binding.key))).toEqual([key]);
    const again = await call(tenant.key, "DELETE", `/v1/registry/keys/${key}`);
    expect([again.status, again.body]).toEqual([200, first.body]);
  });

  it("does not take keys that are unknown, or that the service holds", async () => {
    const [genesis] = (await registry(tenant)).records;
    const managed = decodeRecord(fromBase64(genesis?.record ?? "")).add.map(({ key }) => toHex(key));
    for (const key of [...managed, "ab".repeat(32)]) {
      expect((await call(tenant.key, "DELETE", `/v1/registry/keys/${key}`)).status).toBe(404);
    }
    expect((await call(tenant.key, "DELETE", "/v1/registry/keys/zz")).status).toBe(404);
  });
});

describe("rotating a managed key", () => {
  it("is signed by both keys, takes effect later, and is refused again until then", async () => {
    const of = await newTenant();
    const now = Date.now();
    const answer = await call(of.key, "POST", "/v1/registry/rotations", { role: "audit" });
    expect(answer.status).toBe(201);
    const record = await last(of);
    expect([record.op, record.add[0]?.role, record.retire[0]?.role]).toEqual([
      OPS.rotate,
      ROLES.audit,
      ROLES.audit,
    ]);
    const signers = (answer.body.signatures as unknown as { key: string }[]).map(({ key }) => key);
    expect(signers).toEqual([...record.add, ...record.retire].map(({ key }) => toHex(key)).sort());
    expect(Date.parse(String(answer.body.effective_at)) - now).toBeGreaterThanOrEqual(120_000);
    expect((await registry(of)).epoch).toBe(0);
    const again = await call(of.key, "POST", "/v1/registry/rotations", { role: "audit" });
    expect([again.status, problem(again)]).toEqual([409, "registry-pending"]);
    expect((await call(of.key, "POST", "/v1/registry/rotations", { role: "log" })).status).toBe(201);
    // What comes after a rotation is not in effect before it, and is signed by the key that the chain names.
    const { answer: added } = await addKey(of);
    expect(added.status).toBe(201);
    expect((added.body.signatures as unknown as { key: string }[]).map(({ key }) => key)).toContain(
      toHex(record.add[0]?.key ?? new Uint8Array()),
    );
    expect(Date.parse(String(added.body.effective_at))).toBeGreaterThanOrEqual(
      Date.parse(String(answer.body.effective_at)),
    );
    expect((await registry(of)).epoch).toBe(0);
  });

  it("is offered for the roles that the service holds alone", async () => {
    for (const role of ["client", "recovery", "witness", ""]) {
      expect((await call(tenant.key, "POST", "/v1/registry/rotations", { role })).status).toBe(400);
    }
  });
});

describe("the offline recovery key", () => {
  it("is bound by genesis, which it signs, and replaces the audit key at once", async () => {
    const { recovery, tenant: of } = await newTenantWithRecovery();
    const [genesis] = (await registry(of)).records;
    expect(decodeRecord(fromBase64(genesis?.record ?? "")).add.map(({ role }) => role)).toEqual([1, 2, 7]);
    const answer = await recoverKey(of, recovery);
    expect(answer.status).toBe(201);
    const record = await last(of);
    expect([record.op, record.add[0]?.role]).toEqual([OPS.recover, ROLES.audit]);
    expect((await registry(of)).epoch).toBe(1);
    const appended = await call(of.key, "POST", "/v1/principals/p/entries", {
      kind: "run.created",
      run: "r",
      action: {},
    });
    expect((appended.body.head as unknown as { key: string }).key).toBe(
      toHex(record.add[0]?.key ?? new Uint8Array()),
    );
    expect((await call(of.key, "GET", "/v1/principals/p/verify")).body.verdict).toBe("intact");
    expect((await recoverKey(of, recovery, "log")).status).toBe(201);
  });

  it("refuses another key's signature, a key that was not proposed, and a tenant without one", async () => {
    const { recovery, tenant: of } = await newTenantWithRecovery();
    const proposal = await propose(of, { op: "recover", role: "audit" });
    const wrong = await call(of.key, "POST", "/v1/registry/recoveries", signed(newSigner(), proposal));
    expect([wrong.status, wrong.body.pointer]).toEqual([422, "/signature"]);
    const decoded = decodeRecord(fromBase64(proposal.record));
    const record = encodeRecord({ ...decoded, add: [{ role: ROLES.audit, key: newSigner().publicKey }] });
    const signature = toHex(recovery.sign(signedMessage("registry", nativeCrypto.sha256(record))));
    const foreign = await call(of.key, "POST", "/v1/registry/recoveries", {
      record: toBase64(record),
      signature,
    });
    expect([foreign.status, problem(foreign)]).toEqual([409, "registry-moved"]);
    await propose(of, { op: "recover", role: "audit" });
    const replaced = await call(of.key, "POST", "/v1/registry/recoveries", signed(recovery, proposal));
    expect([replaced.status, problem(replaced)]).toEqual([409, "registry-moved"]);
    const none = await call(tenant.key, "POST", "/v1/registry/proposals", { op: "recover", role: "audit" });
    expect([none.status, problem(none)]).toEqual([409, "no-recovery-key"]);
  });

  it("has to sign the genesis that was drafted", async () => {
    const operator = env.RUNSEAL_OPERATOR_TOKEN;
    const recovery = newSigner();
    const key = toHex(recovery.publicKey);
    const headers = { "idempotency-key": `draft-${key}` };
    const body = { name: "n", recovery_key: key };
    expect((await call(operator, "POST", "/v1/tenants", body)).status).toBe(400);
    const early = { ...body, recovery_signature: "00".repeat(64) };
    expect((await call(operator, "POST", "/v1/tenants", early, headers)).status).toBe(409);
    const draft = await call(operator, "POST", "/v1/tenants", body, headers);
    expect(await call(operator, "POST", "/v1/tenants", body, headers)).toMatchObject({
      status: 202,
      body: draft.body,
    });
    const wrong = await call(operator, "POST", "/v1/tenants", early, headers);
    expect([wrong.status, wrong.body.pointer]).toEqual([422, "/recovery_signature"]);
    const { genesis } = draft.body as unknown as { genesis: ProposalBody };
    const right = { ...body, recovery_signature: signed(recovery, genesis).signature };
    const created = await call(operator, "POST", "/v1/tenants", right, headers);
    expect(created.status).toBe(201);
    expect((await call(operator, "POST", "/v1/tenants", right, headers)).body).toEqual(created.body);
    expect((await call(operator, "POST", "/v1/tenants", body, headers)).body).toEqual(created.body);
    // Without the key the same request is another one.
    expect((await call(operator, "POST", "/v1/tenants", { name: "n" }, headers)).status).toBe(422);
    const small = { ...body, recovery_key: "00".repeat(32) };
    expect((await call(operator, "POST", "/v1/tenants", small, { "idempotency-key": "small" })).status).toBe(
      422,
    );
  });
});
