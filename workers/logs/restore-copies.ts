/**
 * The part of a rebuild that comes after the logs: policies and tool specs, from R2. A step lists what R2 has, asks D1
 * which of these it lacks, and takes some of them back.
 *
 * @module
 */
import type { TenantRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import type { Env } from "../env.ts";
import { logEvent } from "../log-event.ts";
import { askMirror, type TakenBack } from "../mirror.ts";
import { POLICY_COPIES, parsePolicyKey } from "../policies/copy.ts";
import { shownVersions, type VersionName } from "../policies/store.ts";
import { takeBack } from "../policies/take-back.ts";
import { parseSpecKey, SPEC_COPIES, storedSpecs, takeBackSpecs } from "../tools/store.ts";

/** Bounds of one step, for policies and for specs each. An object, so that a test can lower them. */
export const COPIES_STEP = {
  /** Keys that are listed: R2's own bound is 1,000. */
  keys: 1000,
  /** Objects that are read, and their bytes; one at least. */
  objects: 48,
  bytes: 8 * 1024 * 1024,
};

export interface CopiesStep extends TakenBack {
  /** Where the next step goes on; null when all is through. */
  readonly after: string | null;
}

/** An object in R2; the key is what follows `t/<tenant>/`. */
interface Listed {
  readonly key: string;
  /** Bytes. */
  readonly size: number;
}

interface Folder {
  readonly prefix: string;
  /** Those that D1 lacks, and those whose key says nothing. */
  missing(env: Env, tenant: TenantRecord, listed: readonly Listed[]): Promise<readonly Listed[]>;
  take(env: Env, tenant: TenantRecord, keys: readonly string[]): Promise<TakenBack>;
}

const POLICIES: Folder = {
  prefix: POLICY_COPIES,
  async missing(env, { id }, listed) {
    const versions = listed.map(({ key }) => parsePolicyKey(key)).filter((version) => version !== null);
    const shown = await shownVersions(env.DB, id, versions);
    return listed.filter(({ key }) => {
      const version = parsePolicyKey(key);
      return version === null || !shown(version);
    });
  },
  take: (env, tenant, keys) =>
    takeNamed(keys, parsePolicyKey, tenant, (named: VersionName[]) => takeBack(env, tenant, named)),
};

const SPECS: Folder = {
  prefix: SPEC_COPIES,
  async missing(env, { id }, listed) {
    const hashes = listed.map(({ key }) => parseSpecKey(key)).filter((hash) => hash !== null);
    const stored = await storedSpecs(env.DB, id, hashes);
    return listed.filter(({ key }) => !stored.has(parseSpecKey(key) ?? ""));
  },
  take: (env, tenant, keys) =>
    takeNamed(keys, parseSpecKey, tenant, (named: string[]) => takeBackSpecs(env, tenant.id, named)),
};

/** Takes those whose key names something; the others are refused. */
async function takeNamed<T>(
  keys: readonly string[],
  parse: (key: string) => T | null,
  tenant: TenantRecord,
  take: (named: T[]) => Promise<TakenBack>,
): Promise<TakenBack> {
  const named: T[] = [];
  let nameless = 0;
  for (const key of keys) {
    const name = parse(key);
    if (name !== null) named.push(name);
    else {
      nameless += 1;
      logEvent("copy-refused", { tenant: tenant.id, key, why: "not a key of the service" });
    }
  }
  const { restored, refused } = await take(named);
  return { restored, refused: refused + nameless };
}

/** The next step after the place where the last one ended; "" for the first. Throws 503 problems. */
export async function restoreCopies(env: Env, tenant: TenantRecord, after: string): Promise<CopiesStep> {
  let [restored, refused] = [0, 0];
  for (const folder of after.startsWith(SPECS.prefix) ? [SPECS] : [POLICIES, SPECS]) {
    const step = await stepOf(env, tenant, folder, after.startsWith(folder.prefix) ? after : folder.prefix);
    restored += step.restored;
    refused += step.refused;
    if (step.after !== null) return { restored, refused, after: step.after };
  }
  return { restored, refused, after: null };
}

async function stepOf(env: Env, tenant: TenantRecord, folder: Folder, after: string): Promise<CopiesStep> {
  const base = `t/${tenant.id}/`;
  const { objects, truncated } = await askMirror(env, (bucket) =>
    bucket.list({ prefix: base + folder.prefix, startAfter: base + after, limit: COPIES_STEP.keys }),
  );
  const listed = objects.map(({ key, size }) => ({ key: key.slice(base.length), size }));
  const missing = await folder.missing(env, tenant, listed);
  const due: string[] = [];
  let bytes = 0;
  for (const { key, size } of missing) {
    bytes += size;
    if (due.length > 0 && (due.length === COPIES_STEP.objects || bytes > COPIES_STEP.bytes)) break;
    due.push(key);
  }
  const taken = await folder.take(env, tenant, due);
  const last = due.length < missing.length ? due.at(-1) : truncated ? listed.at(-1)?.key : undefined;
  return { ...taken, after: last ?? null };
}
