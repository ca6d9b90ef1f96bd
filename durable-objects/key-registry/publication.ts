/**
 * A record's way into effect: create-only in R2, then D1, then on the
 * tenant's system log. Each step can be done again; a record that got stuck goes on where it was.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { equalBytes, fromBase64, toHex, utf8 } from "../../shared/bytes.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { RegistryRecord, Role, RoleName } from "../../shared/registry/record.ts";
import { decodeRecord, OPS, ROLES } from "../../shared/registry/record.ts";
import { formatTime } from "../../shared/time.ts";
import type { Env } from "../../workers/env.ts";
import { forgetRegistry } from "../../workers/logs/registry.ts";
import { appendSystemEntry } from "../../workers/logs/system-log.ts";
import type { RecordStore, StoredRecord } from "./record-store.ts";
import { isRecovery, STAGES } from "./record-store.ts";
import { recordKey } from "./set-back.ts";
import type { PublishedRecord } from "./types.ts";

/** Seconds between a rotation's publication and its effect, where ROTATION_DELAY_SECONDS says nothing else. */
const ROTATION_DELAY_SECONDS = 120;

/** The role's name. */
export function roleName(role: Role): RoleName {
  return (Object.keys(ROLES) as RoleName[]).find((name) => ROLES[name] === role) ?? "recovery";
}

/**
 * Milliseconds between a record's publication and its effect. A rotation waits until every isolate knows of it; a
 * recovery does not, for the key that it replaces is in wrong hands or lost.
 */
function delayOf(env: Env, record: RegistryRecord): number {
  if (record.op !== OPS.rotate) return 0;
  const seconds = Number(env.ROTATION_DELAY_SECONDS ?? ROTATION_DELAY_SECONDS);
  return 1000 * (Number.isFinite(seconds) && seconds >= 0 ? seconds : ROTATION_DELAY_SECONDS);
}

/** Puts the record where everybody finds it. Throws what R2 and D1 throw, and `RunsealError("registry-fork")`. */
async function publish(env: Env, tenant: string, record: PublishedRecord): Promise<void> {
  const key = recordKey(tenant, record.epoch);
  const body = utf8(JSON.stringify(record));
  const put = await env.MIRROR.put(key, body, { onlyIf: new Headers({ "If-None-Match": "*" }) });
  if (put === null) {
    const there = await env.MIRROR.get(key);
    if (there === null || !equalBytes(new Uint8Array(await there.arrayBuffer()), body)) {
      throw new RunsealError("registry-fork", "another record is published under this epoch");
    }
  }
  const signatures = JSON.stringify(record.signatures);
  await env.DB.prepare("INSERT INTO registry_records VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")
    .bind(tenant, record.epoch, record.record, signatures)
    .run();
}

const KIND_OF = ["key.created", "key.rotated", "key.added", "key.retired", "key.recovered"] as const;

/** Writes the record's entry on the system log. Genesis' is written with the tenant, whose log needs the registry. */
async function record(env: Env, tenantId: string, stored: StoredRecord): Promise<void> {
  const bytes = fromBase64(stored.published.record);
  const { op, epoch, add, retire } = decodeRecord(bytes);
  if (op === OPS.genesis) return;
  const tenant = await env.TENANT_DIRECTORY.getByName(tenantId).tenant();
  if (tenant === null) throw new RunsealError("no-tenant", "the registry's tenant does not exist");
  const [added] = add;
  const [retired] = retire;
  const binding = added ?? retired;
  if (binding === undefined) throw new RunsealError("malformed-registry", "the record binds nothing");
  await appendSystemEntry(env, tenant, {
    id: `registry.${epoch}`,
    kind: KIND_OF[op],
    action: {
      epoch,
      record_hash: toHex(nativeCrypto.sha256(bytes)),
      role: roleName(binding.role),
      key: toHex(binding.key),
      ...(added === undefined || retired === undefined ? {} : { retired: toHex(retired.key) }),
      ...(op === OPS.rotate && stored.effectiveAt !== null
        ? { effective_at: formatTime(BigInt(stored.effectiveAt) * 1_000_000n) }
        : {}),
      ...(stored.by === null ? {} : { by: stored.by }),
    },
  });
}

/**
 * Takes every record as far as it goes: first all into R2 and D1, for a recovery among them may be what the entries of those
 * before it wait for. Throws what the first step throws that fails; done steps stay done.
 */
export async function completeRecords(env: Env, tenant: string, store: RecordStore): Promise<void> {
  let effective = 0;
  for (const { published, stage, effectiveAt } of store.records()) {
    if (stage !== STAGES.stored) {
      effective = effectiveAt ?? effective;
      continue;
    }
    await publish(env, tenant, published);
    const delay = delayOf(env, decodeRecord(fromBase64(published.record)));
    // An epoch is in effect only after those before it, whatever their delays.
    effective = Math.max(effective, Date.now() + delay);
    store.setPublished(published.epoch, effective);
  }
  const left = store.records().filter(({ stage }) => stage === STAGES.published);
  // This isolate is not to write under a key that is recovered from.
  if (left.some(({ published }) => isRecovery(published))) forgetRegistry(tenant);
  for (const stored of left) {
    await record(env, tenant, stored);
    store.setRecorded(stored.published.epoch);
  }
}
