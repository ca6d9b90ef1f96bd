/**
 * Takes versions that D1 lost, or has wrong, back from R2: those that the `$system` log records with the content that is
 * there.
 *
 * @module
 */
import type { TenantRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import type { Env } from "../env.ts";
import { isRefusedRow } from "../index-db/refused-row.ts";
import { logEvent } from "../log-event.ts";
import { forEach, type TakenBack } from "../mirror.ts";
import { policyKey, readCopy } from "./copy.ts";
import { recordedVersions } from "./recorded.ts";
import type { StoredPolicy, VersionName } from "./store.ts";
import { restore } from "./store.ts";

/** Takes back what R2 has of these versions; one that it lacks is passed over. Throws 503 problems, and what D1 throws. */
export async function takeBack(
  env: Env,
  tenant: TenantRecord,
  versions: readonly VersionName[],
): Promise<TakenBack> {
  if (versions.length === 0) return { restored: 0, refused: 0 };
  const isRecorded = await recordedVersions(env, tenant, versions);
  let [restored, refused] = [0, 0];
  const take = async (version: VersionName): Promise<void> => {
    const copy = await readCopy(env, tenant.id, version);
    if (copy === null) return;
    const why =
      copy === "altered"
        ? "not a policy"
        : isRecorded(copy)
          ? await putBack(env, tenant.id, copy)
          : "not the content that the system log records";
    if (why === null) {
      restored += 1;
      return;
    }
    refused += 1;
    logEvent("copy-refused", { tenant: tenant.id, key: policyKey(version), why });
  };
  await forEach(versions, take);
  return { restored, refused };
}

/** Why D1 does not take the version; null where it has it. Throws what a D1 that is away throws. */
async function putBack(env: Env, tenant: string, copy: StoredPolicy): Promise<string | null> {
  try {
    await showRecorded(env.DB, tenant, copy);
    return null;
  } catch (error) {
    if (!isRefusedRow(error)) throw error;
    return "D1 does not take it";
  }
}

/**
 * Shows a version that the log records and R2 holds; a row of somebody else's in its place is named in the service's log.
 *
 * @returns whether it was not shown before
 */
export async function showRecorded(
  db: D1Database | D1DatabaseSession,
  tenant: string,
  policy: StoredPolicy,
): Promise<boolean> {
  const restored = await restore(db, tenant, policy);
  if (restored === "replaced") logEvent("policy-row-replaced", { tenant, key: policyKey(policy) });
  return restored === "shown";
}
