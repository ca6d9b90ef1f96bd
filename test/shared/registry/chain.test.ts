import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { fromHex, toHex } from "../../../shared/bytes.ts";
import type { Signer } from "../../../shared/crypto/port.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import { RegistryChain } from "../../../shared/registry/chain.ts";
import type { Binding, Op, Role } from "../../../shared/registry/record.ts";
import { decodeRecord, encodeRecord, OPS, ROLES } from "../../../shared/registry/record.ts";
import { readVectors } from "../../vectors/read.ts";
import { bytesOf, TestTenant } from "../verify/test-tenant.ts";

import {
  a,
  audit,
  b,
  begun,
  bind,
  c,
  client,
  d,
  genesis,
  log,
  next,
  recovery,
  refusal,
  sign,
  witness,
} from "./chain-support.ts";

describe("a chain of registry records", () => {
  it("gives the vectors: every operation, with both crypto ports", () => {
    const { records, registry_id } = readVectors<{
      registry_id: string;
      records: {
        op: number;
        encoded: string;
        hash: string;
        signatures: { key: string; signature: string }[];
      }[];
    }>("registry");
    expect(new Set(records.map(({ op }) => op))).toEqual(new Set(Object.values(OPS)));
    for (const crypto of [nativeCrypto, pureCrypto]) {
      const chain = new RegistryChain(crypto);
      for (const { encoded, hash, signatures } of records) {
        const bytes = fromHex(encoded);
        chain.add({
          bytes,
          signatures: signatures.map((one) => ({ key: fromHex(one.key), signature: fromHex(one.signature) })),
        });
        expect(toHex(chain.head)).toBe(hash);
        expect(toHex(encodeRecord(decodeRecord(bytes)))).toBe(encoded);
      }
      expect(toHex(chain.registryId)).toBe(registry_id);
      expect(chain.epoch).toBe(records.length - 1);
    }
  });

  it("says who held a role at which epoch, and nothing of epochs that have not begun", () => {
    const tenant = new TestTenant("holding");
    const first = tenant.audit;
    const customer = tenant.addKey(client); // epoch 1
    tenant.rotate(); // epoch 2
    tenant.retireKey(customer); // epoch 3
    const { chain } = tenant;
    const epochs = [0, 1, 2, 3, 4, 99];
    const held = (role: Role, signer: Signer) =>
      epochs.filter((epoch) => chain.holds(role, signer.publicKey, epoch));
    expect(held(audit, first)).toEqual([0, 1]);
    expect(held(audit, tenant.audit)).toEqual([2, 3]);
    expect(held(client, customer)).toEqual([1, 2]);
    expect(held(client, first)).toEqual([]);
    expect(held(log, tenant.log)).toEqual([0, 1, 2, 3]);
    expect(chain.lastEpochHeld(audit, first.publicKey)).toBe(1);
    expect(chain.lastEpochHeld(audit, tenant.audit.publicKey)).toBe(3);
    expect(chain.lastEpochHeld(client, first.publicKey)).toBeNull();
    expect(chain.active(audit)).toEqual([tenant.audit.publicKey]);
    expect(chain.active(client)).toEqual([]);
    expect(chain.ever(audit)).toEqual([first.publicKey, tenant.audit.publicKey]);
    expect(chain.origin).toBe(`log.example/t/${tenant.id}`);
  });

  it("has no id before genesis, and then the hash of genesis for ever", () => {
    const empty = new RegistryChain(nativeCrypto);
    expect(() => empty.registryId).toThrow(expect.objectContaining({ code: "invalid-registry" }));
    expect([empty.epoch, toHex(empty.head)]).toEqual([-1, "00".repeat(32)]);
    const tenant = new TestTenant("id");
    const id = tenant.registryId;
    tenant.rotate();
    expect(tenant.registryId).toBe(id);
    expect(id).toBe(toHex(nativeCrypto.sha256(tenant.records[0]?.bytes ?? new Uint8Array())));
  });
});

describe("a record after genesis", () => {
  const must = "it is not signed by exactly the keys that must sign it";
  const replace = "it does not replace one key by one of the same role";
  type Case = readonly [string, Op, readonly Binding[], readonly Binding[], readonly Signer[], string];
  const cases: readonly Case[] = [
    ["rotates the audit key", OPS.rotate, [bind(audit, c)], [bind(audit, a)], [a, c], "accepted"],
    ["rotates the log key", OPS.rotate, [bind(log, c)], [bind(log, b)], [b, c], "accepted"],
    ["rotates, signed by the new key alone", OPS.rotate, [bind(audit, c)], [bind(audit, a)], [c], must],
    ["rotates, signed by the old key alone", OPS.rotate, [bind(audit, c)], [bind(audit, a)], [a], must],
    ["rotates, signed by recovery", OPS.rotate, [bind(audit, c)], [bind(audit, a)], [recovery, c], must],
    ["rotates from one role to another", OPS.rotate, [bind(log, c)], [bind(audit, a)], [a, c], replace],
    [
      "rotates two for one",
      OPS.rotate,
      [bind(audit, c), bind(audit, d)],
      [bind(audit, a)],
      [a, c, d],
      replace,
    ],
    ["rotates and retires nothing", OPS.rotate, [bind(audit, c)], [], [c], replace],
    [
      "rotates the recovery key",
      OPS.rotate,
      [bind(ROLES.recovery, c)],
      [bind(ROLES.recovery, recovery)],
      [recovery, c],
      "only audit and log keys are replaced",
    ],
    [
      "retires a key in a role that it does not hold",
      OPS.rotate,
      [bind(audit, c)],
      [bind(audit, b)],
      [b, c],
      "a retired key does not hold the role",
    ],
    [
      "rotates to a key that has another role",
      OPS.rotate,
      [bind(audit, b)],
      [bind(audit, a)],
      [a, b],
      "a key is registered more than once",
    ],
    [
      "rotates a key to itself",
      OPS.rotate,
      [bind(audit, a)],
      [bind(audit, a)],
      [a],
      "a key is registered more than once",
    ],
    ["recovers the audit key", OPS.recover, [bind(audit, c)], [bind(audit, a)], [c, recovery], "accepted"],
    ["recovers the log key", OPS.recover, [bind(log, c)], [bind(log, b)], [c, recovery], "accepted"],
    ["recovers, signed by the old key", OPS.recover, [bind(audit, c)], [bind(audit, a)], [a, c], must],
    ["recovers, signed by recovery alone", OPS.recover, [bind(audit, c)], [bind(audit, a)], [recovery], must],
    [
      "recovers a client",
      OPS.recover,
      [bind(client, c)],
      [bind(client, d)],
      [c, recovery],
      "a retired key does not hold the role",
    ],
    ["adds a client", OPS.add, [bind(client, c)], [], [a, c], "accepted"],
    ["adds a witness", OPS.add, [bind(witness, c)], [], [a, c], "accepted"],
    ["adds an Astrid key", OPS.add, [bind(ROLES.astrid_audit, c)], [], [a, c], "accepted"],
    ["adds an older Astrid key", OPS.add, [bind(ROLES.astrid_v1, c)], [], [a, c], "accepted"],
    [
      "adds an audit key",
      OPS.add,
      [bind(audit, c)],
      [],
      [a, c],
      "audit, log and recovery keys are not added or retired alone",
    ],
    [
      "adds a log key",
      OPS.add,
      [bind(log, c)],
      [],
      [a, c],
      "audit, log and recovery keys are not added or retired alone",
    ],
    [
      "adds a recovery key",
      OPS.add,
      [bind(ROLES.recovery, c)],
      [],
      [a, c],
      "audit, log and recovery keys are not added or retired alone",
    ],
    ["adds, not signed by the added key", OPS.add, [bind(client, c)], [], [a], must],
    ["adds, not signed by the audit key", OPS.add, [bind(client, c)], [], [c], must],
    ["adds, signed by the log key", OPS.add, [bind(client, c)], [], [b, c], must],
    [
      "adds two",
      OPS.add,
      [bind(client, c), bind(client, d)],
      [],
      [a, c, d],
      "it does not add exactly one key",
    ],
    ["adds none", OPS.add, [], [], [a], "it does not add exactly one key"],
    [
      "retires the audit key",
      OPS.retire,
      [],
      [bind(audit, a)],
      [a],
      "audit, log and recovery keys are not added or retired alone",
    ],
    [
      "retires the recovery key",
      OPS.retire,
      [],
      [bind(ROLES.recovery, recovery)],
      [a],
      "audit, log and recovery keys are not added or retired alone",
    ],
    ["retires none", OPS.retire, [], [], [a], "it does not retire exactly one key"],
    [
      "retires a key that nobody added",
      OPS.retire,
      [],
      [bind(client, c)],
      [a],
      "a retired key does not hold the role",
    ],
  ];
  it.each(cases)("that %s", (_, op, add, retire, signers, expected) => {
    const chain = begun();
    expect(refusal(chain, sign(next(chain, op, add, retire), ...signers))).toBe(expected);
    expect(chain.epoch).toBe(expected === "accepted" ? 1 : 0);
  });

  it("retires a client that was added, once", () => {
    const chain = begun();
    chain.add(sign(next(chain, OPS.add, [bind(client, c)], []), a, c));
    const retire = () => sign(next(chain, OPS.retire, [], [bind(client, c)]), a);
    expect(refusal(chain, retire())).toBe("accepted");
    expect(refusal(chain, retire())).toBe("a retired key does not hold the role");
  });

  it("never brings a key back, in no role", () => {
    const chain = begun();
    chain.add(sign(next(chain, OPS.rotate, [bind(audit, c)], [bind(audit, a)]), a, c));
    const twice = "a key is registered more than once";
    expect(refusal(chain, sign(next(chain, OPS.rotate, [bind(audit, a)], [bind(audit, c)]), a, c))).toBe(
      twice,
    );
    expect(refusal(chain, sign(next(chain, OPS.add, [bind(client, a)], []), a, c))).toBe(twice);
  });

  it("is signed by the audit key of its time, not by an older one", () => {
    const chain = begun();
    chain.add(sign(next(chain, OPS.rotate, [bind(audit, c)], [bind(audit, a)]), a, c));
    expect(refusal(chain, sign(next(chain, OPS.add, [bind(client, d)], []), a, d))).toBe(must);
    expect(refusal(chain, sign(next(chain, OPS.add, [bind(client, d)], []), c, d))).toBe("accepted");
  });

  it("can't be recovered where genesis named no recovery key", () => {
    const chain = new RegistryChain(nativeCrypto);
    chain.add(sign(genesis([bind(audit, a)]), a));
    const record = next(chain, OPS.recover, [bind(audit, c)], [bind(audit, a)]);
    expect(refusal(chain, sign(record, c, recovery))).toBe("genesis names no recovery key");
  });

  it("follows the one before: its epoch and its hash", () => {
    const chain = begun();
    const record = next(chain, OPS.add, [bind(client, c)], []);
    expect(refusal(chain, sign({ ...record, epoch: 2 }, a, c))).toBe("epoch 1 was expected");
    expect(refusal(chain, sign({ ...record, epoch: 0 }, a, c))).toBe("epoch 1 was expected");
    expect(refusal(chain, sign({ ...record, prev: bytesOf("x", 32) }, a, c))).toBe(
      "prev is not the hash of the record before",
    );
  });

  it("has its signatures in the order of the keys, each once, and each good", () => {
    const chain = begun();
    const good = sign(next(chain, OPS.add, [bind(client, c)], []), a, c);
    const [one, two] = good.signatures;
    if (one === undefined || two === undefined) throw new Error("unreachable");
    expect(refusal(chain, { ...good, signatures: [two, one] })).toBe(must);
    expect(refusal(chain, { ...good, signatures: [one, one, two] })).toBe(must);
    expect(refusal(chain, { ...good, signatures: [] })).toBe(must);
    const swapped = [
      { ...one, signature: two.signature },
      { ...two, signature: one.signature },
    ];
    expect(refusal(chain, { ...good, signatures: swapped })).toBe("a signature does not verify");
    expect(refusal(chain, good)).toBe("accepted");
  });

  it("with any bit flipped, of the record or of a signature, is refused", () => {
    const chain = begun();
    const good = sign(next(chain, OPS.add, [bind(client, c)], []), a, c);
    const length = good.bytes.length + 2 * 96;
    fc.assert(
      fc.property(fc.nat(length - 1), fc.nat(7), (at, bit) => {
        const bytes = good.bytes.slice();
        const signatures = good.signatures.map(({ key, signature }) => ({
          key: key.slice(),
          signature: signature.slice(),
        }));
        const parts = [bytes, ...signatures.flatMap(({ key, signature }) => [key, signature])];
        let rest = at;
        const part = parts.find((one) => {
          if (rest < one.length) return true;
          rest -= one.length;
          return false;
        });
        if (part === undefined) throw new Error("unreachable");
        part[rest] = (part[rest] ?? 0) ^ (1 << bit);
        expect(refusal(chain, { bytes, signatures })).not.toBe("accepted");
      }),
      { numRuns: 300 },
    );
  });
});
