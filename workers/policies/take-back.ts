/**
 * Takes versions that D1 lost back from R2: those that the `$system` log records with the content that is there.
 *
 * @module
 */
import type { TenantRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import type { Env } from "../env.ts";
import { logEvent } from "../log-event.ts";
import { forEach, type TakenBack } from "../mirror.ts";
import { policyKey, readCopy } from "./copy.ts";
import { recordedVersions } from "./recorded.ts";
import { restore, type VersionName } from "./store.ts";

/** Takes back what R2 has of these versions; one that it lacks is passed over. Throws 503 problems. */
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
        : !isRecorded(copy)
          ? "not the content that the system log records"
          : (await restore(env.DB, tenant.id, copy))
            ? null
            : "shown as another version";
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
