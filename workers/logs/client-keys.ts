/**
 * Clients' signatures at ingest: the key has to hold the role `client` at the epoch under which the log will store the
 * entry, and to have signed the entry's statement for this log (docs/keys.md).
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { fromHex } from "../../shared/bytes.ts";
import type { LeafBody } from "../../shared/entry/leaf.ts";
import { encodeStatement } from "../../shared/entry/leaf.ts";
import type { ParsedBatch } from "../../shared/entry/parse-batch.ts";
import type { RegistryChain } from "../../shared/registry/chain.ts";
import { ROLES } from "../../shared/registry/record.ts";
import { signedMessage } from "../../shared/signing.ts";
import type { Env } from "../env.ts";
import type { OpenLog } from "./open-log.ts";
import { logIdOf } from "./read.ts";
import { registryChain } from "./registry.ts";

/** Checks the signature of one entry. */
export type VerifyClient = (body: LeafBody) => boolean;

/** A batch, and the epoch at which the keys in it were checked; null where nothing is signed. */
export interface CheckedBatch {
  readonly batch: ParsedBatch;
  readonly signedEpoch: number | null;
}

/** How old a registry may be that does not know a key: unknown keys must not make every request ask for it. */
const UNKNOWN_KEY_AGE_MS = 1000;

/** Breaks off the first reading of a batch, at its first signed entry. */
class SignedEntryFound extends Error {
  override readonly name = "SignedEntryFound";
}

function verifierOf(chain: RegistryChain, logId: Uint8Array, epoch: number): VerifyClient {
  return (body) => {
    const { client } = body;
    if (client === null || !chain.holds(ROLES.client, client.key, epoch)) return false;
    const message = signedMessage("client", nativeCrypto.sha256(encodeStatement(logId, body)));
    return nativeCrypto.verifyEd25519(client.key, message, client.signature);
  };
}

/**
 * Reads a batch. Most batches have no signature: they are read once, and nothing is asked of the registry.
 *
 * @param openLog the log, or null where it does not exist yet, and so nobody can have signed for it
 * @param atLeast an epoch that the log is known to have reached
 * @param parse reads the batch with a check of signatures
 */
export async function readSigned(
  env: Env,
  tenant: string,
  openLog: () => Promise<OpenLog | null>,
  atLeast: number,
  parse: (verifyClient: VerifyClient) => ParsedBatch,
): Promise<CheckedBatch> {
  try {
    const unsigned = parse(() => {
      throw new SignedEntryFound();
    });
    return { batch: unsigned, signedEpoch: null };
  } catch (error) {
    if (!(error instanceof SignedEntryFound)) throw error;
  }
  const log = await openLog();
  if (log === null) return { batch: parse(() => false), signedEpoch: null };
  const logId = fromHex(logIdOf(log));
  const epoch = Math.max(log.epoch, atLeast);
  const chain = await registryChain(env, tenant, { epoch });
  const batch = parse(verifierOf(chain, logId, epoch));
  const unknown = batch.entries.some((entry) => !entry.ok && entry.problem.code === "unknown-client-key");
  if (!unknown) return { batch, signedEpoch: epoch };
  // The key may have been added a moment ago, through another isolate.
  const newer = await registryChain(env, tenant, { epoch, maxAgeMs: UNKNOWN_KEY_AGE_MS });
  if (newer === chain) return { batch, signedEpoch: epoch };
  const again = await openLog();
  const now = Math.max(again?.epoch ?? epoch, epoch);
  return { batch: parse(verifierOf(newer, logId, now)), signedEpoch: now };
}
