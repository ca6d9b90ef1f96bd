import { expect } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { toHex } from "../../../shared/bytes.ts";
import type { Signer } from "../../../shared/crypto/port.ts";
import { RegistryChain } from "../../../shared/registry/chain.ts";
import type { Binding, Op, RegistryRecord, Role, SignedRecord } from "../../../shared/registry/record.ts";
import { compareBindings, genesisRecord, ROLES, signRecord } from "../../../shared/registry/record.ts";
import { bytesOf, signerOf, T0 } from "../verify/test-tenant.ts";

export const [a, b, c, d, recovery] = ["a", "b", "c", "d", "recovery"].map((label) => signerOf(label)) as [
  Signer,
  Signer,
  Signer,
  Signer,
  Signer,
];
export const bind = (role: Role, signer: Signer): Binding => ({ role, key: signer.publicKey });
export const { audit, log, client, witness } = ROLES;

export function genesis(
  add: readonly Binding[] = [bind(audit, a), bind(log, b), bind(ROLES.recovery, recovery)],
): RegistryRecord {
  return genesisRecord({ origin: "log.example/t/00", nonce: bytesOf("nonce", 16), time: T0, add });
}

/** A chain that stands at genesis. */
export function begun(): RegistryChain {
  const chain = new RegistryChain(nativeCrypto);
  chain.add(signRecord(nativeCrypto, genesis(), [a, b, recovery]));
  return chain;
}

export function next(
  chain: RegistryChain,
  op: Op,
  add: readonly Binding[],
  retire: readonly Binding[],
): RegistryRecord {
  const sorted = (all: readonly Binding[]) => [...all].sort(compareBindings);
  return {
    epoch: chain.epoch + 1,
    prev: chain.head,
    time: T0,
    op,
    add: sorted(add),
    retire: sorted(retire),
    genesis: null,
  };
}

export const sign = (record: RegistryRecord, ...signers: Signer[]) =>
  signRecord(nativeCrypto, record, signers);

/** Why the chain refuses the record, without the epoch in front; the chain must be as it was before. */
export function refusal(chain: RegistryChain, signed: SignedRecord): string {
  const before = [chain.epoch, toHex(chain.head), chain.ever(audit).length];
  try {
    chain.add(signed);
  } catch (error) {
    expect([chain.epoch, toHex(chain.head), chain.ever(audit).length]).toEqual(before);
    return (error as Error).message.replace(/^registry record \d+: /, "");
  }
  return "accepted";
}
