/**
 * A registry whose storage was set back: R2 holds records after its last one. It takes them over, for whoever has seen them
 * verifies by them, and what a retired key signs now would count as a forgery. A managed key that came with one of them is
 * lost; nothing is signed in its place by the one before.
 *
 * @module
 */
import { fromBase64, toHex } from "../../shared/bytes.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { ManagedRole } from "../../shared/registry/record.ts";
import { decodeRecord, ROLES } from "../../shared/registry/record.ts";
import { logEvent } from "../../workers/log-event.ts";
import type { WrappedKey } from "../managed-keys.ts";
import type { RecordStore } from "./record-store.ts";
import type { PublishedRecord } from "./types.ts";
import { publishedOf, signedRecordOf } from "./types.ts";

/** Where R2 has the tenant's record of an epoch. */
export function recordKey(tenant: string, epoch: number): string {
  return `t/${tenant}/registry/${epoch}`;
}

/**
 * Takes over the published records that R2 has after the registry's last one, each verified by the chain. What is none is
 * passed over: who writes to R2 alone can't end a registry. Throws what R2 throws.
 */
export async function takeBack(bucket: R2Bucket, store: RecordStore): Promise<void> {
  const chain = store.chain();
  const tenant = chain.origin.split("/t/")[1];
  // A registry that has no genesis yet has lost nothing.
  if (tenant === undefined) return;
  const lost: PublishedRecord[] = [];
  for (;;) {
    const object = await bucket.get(recordKey(tenant, chain.epoch + 1));
    if (object === null) break;
    try {
      const signed = signedRecordOf((await object.json()) as PublishedRecord);
      // Of the object nothing counts but what is signed.
      lost.push(publishedOf(chain.add(signed).epoch, signed));
    } catch (error) {
      const name = error instanceof Error ? error.name : "unknown";
      logEvent("registry-altered", { tenant, epoch: chain.epoch + 1, error: name });
      break;
    }
  }
  if (lost.length === 0) return;
  store.adopt(lost, Date.now());
  logEvent("registry-set-back", { tenant, records: lost.length, epoch: chain.epoch });
}

/** Throws `RunsealError("key-lost")` where the role is not that key's at the epoch: the right one was lost. */
export function requireHolder(
  records: readonly PublishedRecord[],
  role: ManagedRole,
  epoch: number,
  { publicKey }: WrappedKey,
): void {
  let holder = "";
  for (const { record } of records.slice(0, epoch + 1)) {
    for (const binding of decodeRecord(fromBase64(record)).add)
      if (binding.role === ROLES[role]) holder = toHex(binding.key);
  }
  if (holder !== publicKey)
    throw new RunsealError("key-lost", "the registry was set back, and lost the key of this epoch");
}
