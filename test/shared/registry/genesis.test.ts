import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { fromHex } from "../../../shared/bytes.ts";
import { RegistryChain } from "../../../shared/registry/chain.ts";
import type { SignedRecord } from "../../../shared/registry/record.ts";
import { encodeRecord, OPS } from "../../../shared/registry/record.ts";
import { bytesOf } from "../verify/test-tenant.ts";

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
  recovery,
  refusal,
  sign,
} from "./chain-support.ts";

describe("genesis", () => {
  const chain = () => new RegistryChain(nativeCrypto);

  it("needs one audit key, and may leave the others out", () => {
    expect(refusal(chain(), sign(genesis([bind(audit, a)]), a))).toBe("accepted");
  });

  const cases: readonly (readonly [string, SignedRecord, string])[] = [
    ["without an audit key", sign(genesis([bind(log, b)]), b), "genesis does not bind exactly one audit key"],
    [
      "with two audit keys",
      sign(genesis([bind(audit, a), bind(audit, b)]), a, b),
      "genesis does not bind exactly one audit key",
    ],
    [
      "with two keys of one role",
      sign(genesis([bind(audit, a), bind(client, b), bind(client, c)]), a, b, c),
      "genesis binds a role twice",
    ],
    [
      "with an audit key of a second role",
      sign(genesis([bind(audit, a), bind(log, a)]), a),
      "a key is registered more than once",
    ],
    [
      "that retires",
      sign({ ...genesis(), retire: [bind(audit, d)] }, a, b, recovery),
      "a retired key does not hold the role",
    ],
    [
      "with a prev",
      sign({ ...genesis(), prev: bytesOf("x", 32) }, a, b, recovery),
      "prev is not the hash of the record before",
    ],
    ["of epoch 1", sign({ ...genesis(), epoch: 1 }, a, b, recovery), "epoch 0 was expected"],
    [
      "that one of its keys did not sign",
      sign(genesis(), a, b),
      "it is not signed by exactly the keys that must sign it",
    ],
    [
      "that a stranger signed as well",
      sign(genesis(), a, b, recovery, d),
      "it is not signed by exactly the keys that must sign it",
    ],
    [
      "that a stranger signed in place of a key",
      sign(genesis(), a, b, d),
      "it is not signed by exactly the keys that must sign it",
    ],
    [
      "that is no genesis",
      sign({ ...genesis(), op: OPS.add, genesis: null }, a, b, recovery),
      "the first record is not genesis",
    ],
  ];
  it.each(cases)("is refused %s", (_, signed, why) => {
    expect(refusal(chain(), signed)).toBe(why);
  });

  it("is refused with a key of small order, whoever claims to have signed", () => {
    const small = { role: client, key: fromHex(`01${"00".repeat(31)}`) };
    const record = genesis([bind(audit, a), small]);
    const [signature] = sign(record, a).signatures;
    if (signature === undefined) throw new Error("unreachable");
    const forged = {
      bytes: encodeRecord(record),
      signatures: [{ key: small.key, signature: new Uint8Array(64) }, signature],
    };
    expect(refusal(chain(), forged)).toBe("a key is of small order");
  });

  it("comes once", () => {
    expect(refusal(begun(), sign(genesis(), a, b, recovery))).toBe("epoch 1 was expected");
    const standing = begun();
    const again = { ...genesis([bind(audit, c)]), epoch: 1 };
    expect(refusal(standing, sign(again, c))).toBe("genesis is not the first record");
    const linked = { ...again, prev: standing.head };
    expect(refusal(standing, sign(linked, c))).toBe("prev is not the hash of the record before");
  });
});
