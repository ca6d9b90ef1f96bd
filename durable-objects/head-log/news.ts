/**
 * What the tenant's registry says, as its log of heads reads it before each batch.
 *
 * @module
 */
import { fromBase64 } from "../../shared/bytes.ts";
import type { Env } from "../../workers/env.ts";
import type { NewRecord } from "./batch.ts";

export interface RegistryNews {
  /** Hex. */
  readonly registryId: string;
  /** The epoch in effect. */
  readonly epoch: number;
  /** The records in effect, in order. */
  readonly records: readonly NewRecord[];
}

/** Throws what the registry throws. */
export async function readRegistry(env: Env, tenant: string): Promise<RegistryNews> {
  const { registryId, epoch, records } = await env.KEY_REGISTRY.getByName(tenant).state();
  const inEffect = records
    .filter((record) => record.epoch <= epoch)
    .map((record) => ({ epoch: record.epoch, bytes: fromBase64(record.record) }));
  return { registryId, epoch, records: inEffect };
}
