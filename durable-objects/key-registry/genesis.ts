/**
 * The first record of a registry, with the managed keys that it binds.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { tenantOrigin } from "../../shared/entry/log-id.ts";
import type { SignedRecord } from "../../shared/registry/record.ts";
import { encodeRecord, genesisRecord, ROLES } from "../../shared/registry/record.ts";
import type { WrappedKey } from "../managed-keys.ts";
import { createManagedKey } from "../managed-keys.ts";
import { countersign } from "./next-record.ts";

/**
 * Makes the keys, and the record that they sign.
 *
 * @param recovery the offline recovery key, 32 bytes, whose signature is still to come; null for none
 */
export async function makeGenesis(
  masterKey: string,
  tenant: string,
  host: string,
  recovery: Uint8Array | null,
): Promise<{ signed: SignedRecord; keys: WrappedKey[] }> {
  const audit = await createManagedKey(nativeCrypto, masterKey, tenant, "audit");
  const log = await createManagedKey(nativeCrypto, masterKey, tenant, "log");
  const record = genesisRecord({
    origin: tenantOrigin(host, tenant),
    nonce: crypto.getRandomValues(new Uint8Array(16)),
    time: BigInt(Date.now()) * 1_000_000n,
    add: [
      { role: ROLES.audit, key: audit.signer.publicKey },
      { role: ROLES.log, key: log.signer.publicKey },
      ...(recovery === null ? [] : [{ role: ROLES.recovery, key: recovery }]),
    ],
  });
  const signed = countersign(encodeRecord(record), [audit.signer, log.signer], []);
  return { signed, keys: [audit.wrapped, log.wrapped] };
}
