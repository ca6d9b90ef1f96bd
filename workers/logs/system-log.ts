/**
 * The service's own acts, on the tenant's `$system` log: written before the act takes effect.
 *
 * @module
 */
import { encodeFrame } from "../../durable-objects/principal-log/frame.ts";
import type { TenantRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { prepareEntry } from "../../shared/entry/prepare.ts";
import { JsonReader } from "../../shared/json/reader.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import { openSystemLog, refusal } from "./open-log.ts";

export interface SystemEntry {
  /** The act's own id: writing the same act twice stores it once. */
  readonly id: string;
  readonly kind: string;
  readonly action: Readonly<Record<string, unknown>>;
}

/** The credential id of the service itself. */
const SERVICE_CREDENTIAL = new Uint8Array(16);

/** Appends the entry; throws a 503 problem where it can't be made durable. */
export async function appendSystemEntry(env: Env, tenant: TenantRecord, entry: SystemEntry): Promise<void> {
  const log = await openSystemLog(env, tenant);
  const prepared = prepareEntry(new JsonReader(JSON.stringify(entry)), {
    crypto: nativeCrypto,
    credential: SERVICE_CREDENTIAL,
    defaultReporter: "service",
    writer: "service",
    random: (count) => crypto.getRandomValues(new Uint8Array(count)),
    newId: () => crypto.randomUUID(),
  });
  const outcome = await log.stub.append({
    log: log.identity,
    epoch: log.epoch,
    atomic: false,
    ids: [prepared.id],
    frame: encodeFrame([{ bytes: prepared.body, row: prepared.row }]),
  });
  if (!outcome.ok) throw refusal(outcome);
  // A conflict here is the same act recorded before with another time or reason: it is on record either way.
  if (outcome.items.length !== 1) throw new Problem("internal");
}
