/**
 * The service's own acts, on the tenant's `$system` log: written before the act takes effect.
 *
 * @module
 */
import { encodeFrame } from "../../durable-objects/principal-log/frame.ts";
import type { ItemOutcome } from "../../durable-objects/principal-log/types.ts";
import type { TenantRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { prepareEntry } from "../../shared/entry/prepare.ts";
import { JsonReader } from "../../shared/json/reader.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import type { OpenLog } from "./open-log.ts";
import { openSystemLog, refusal } from "./open-log.ts";

export interface SystemEntry {
  /** The act's own id: writing the same act twice stores it once. */
  readonly id: string;
  readonly kind: string;
  readonly action: Readonly<Record<string, unknown>>;
}

/** The credential id of the service itself. */
const SERVICE_CREDENTIAL = new Uint8Array(16);

/** Appends the entry, and answers its place; throws a 503 problem where it can't be made durable. */
export async function recordSystemEntry(
  env: Env,
  tenant: TenantRecord,
  entry: SystemEntry,
): Promise<ItemOutcome> {
  return recordServiceEntry(await openSystemLog(env, tenant), entry);
}

/** The same on any log. */
export async function recordServiceEntry(log: OpenLog, entry: SystemEntry): Promise<ItemOutcome> {
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
  const [item] = outcome.items;
  if (item === undefined || outcome.items.length !== 1) throw new Problem("internal");
  return item;
}

/**
 * Appends the entry; throws a 503 problem where it can't be made durable. Answers the members in which an entry that is
 * there under this id differs, as JSON pointers: none for a new one, and for the same one again.
 */
export async function appendSystemEntry(
  env: Env,
  tenant: TenantRecord,
  entry: SystemEntry,
): Promise<readonly string[]> {
  const item = await recordSystemEntry(env, tenant, entry);
  // A conflict here is, for most acts, the same act recorded before with another time or reason.
  return item.status === "conflict" ? item.differs : [];
}
