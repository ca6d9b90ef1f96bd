/**
 * The part of a rebuild that comes after the logs: policies and tool specs, from R2. A step lists what R2 has, asks D1
 * which of these it lacks or has wrong, and takes some of them back.
 *
 * @module
 */
import type { TenantRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import type { Env } from "../env.ts";
import { logEvent } from "../log-event.ts";
import { askMirror, type TakenBack } from "../mirror.ts";
import { POLICY_COPIES, parsePolicyKey } from "../policies/copy.ts";
import { shownSizes, soundVersions, versionKey } from "../policies/shown.ts";
import type { VersionName } from "../policies/store.ts";
import { takeBack } from "../policies/take-back.ts";
import { parseSpecKey, SPEC_COPIES, storedSpecs, takeBackSpecs } from "../tools/store.ts";

/** Bounds of one step, for policies and for specs each. An object, so that a test can lower them. */
export const COPIES_STEP = {
  /** Keys that are listed: R2's own bound is 1,000. */
  keys: 1000,
  /** Objects that are read, and their bytes, also of the rows that are compared first; one of each at least. */
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

interface Looked {
  /** How many of what was listed, from the first on, were looked at. */
  readonly looked: number;
  /** Those of them that D1 lacks or has wrong, and those whose key says nothing. */
  readonly missing: readonly Listed[];
}

interface Folder {
  readonly prefix: string;
  look(env: Env, tenant: TenantRecord, listed: readonly Listed[]): Promise<Looked>;
  take(env: Env, tenant: TenantRecord, keys: readonly string[]): Promise<TakenBack>;
}

const POLICIES: Folder = {
  prefix: POLICY_COPIES,
  async look(env, tenant, listed) {
    const all = listed.map(({ key }) => parsePolicyKey(key));
    const sizes = await shownSizes(env, tenant.id, all.filter(isNamed));
    const sizeOf = (version: VersionName | null) =>
      version === null ? 0 : (sizes.get(versionKey(version)) ?? 0);
    let looked = 0;
    for (let sum = 0; looked < all.length; looked++) {
      sum += sizeOf(all[looked] ?? null);
      if (looked > 0 && sum > COPIES_STEP.bytes) break;
    }
    const shown = all.slice(0, looked).filter((version) => sizeOf(version) > 0);
    const sound = await soundVersions(env, tenant, shown.filter(isNamed));
    const isMissing = (_: Listed, i: number): boolean => {
      const version = all[i] ?? null;
      return version === null || !sound.has(versionKey(version));
    };
    return { looked, missing: listed.slice(0, looked).filter(isMissing) };
  },
  take: (env, tenant, keys) =>
    takeNamed(keys, parsePolicyKey, tenant, (named: VersionName[]) => takeBack(env, tenant, named)),
};

const SPECS: Folder = {
  prefix: SPEC_COPIES,
  async look(env, { id }, listed) {
    const hashes = listed.map(({ key }) => parseSpecKey(key)).filter(isNamed);
    const stored = await storedSpecs(env.DB, id, hashes);
    const missing = listed.filter(({ key }) => !stored.has(parseSpecKey(key) ?? ""));
    return { looked: listed.length, missing };
  },
  take: (env, tenant, keys) =>
    takeNamed(keys, parseSpecKey, tenant, (named: string[]) => takeBackSpecs(env, tenant.id, named)),
};

function isNamed<T>(named: T | null): named is T {
  return named !== null;
}

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
  const { looked, missing } = await folder.look(env, tenant, listed);
  const due: string[] = [];
  let bytes = 0;
  for (const { key, size } of missing) {
    bytes += size;
    if (due.length > 0 && (due.length === COPIES_STEP.objects || bytes > COPIES_STEP.bytes)) break;
    due.push(key);
  }
  const taken = await folder.take(env, tenant, due);
  if (due.length < missing.length) return { ...taken, after: due.at(-1) ?? null };
  const through = looked === listed.length && !truncated;
  return { ...taken, after: through ? null : (listed[looked - 1]?.key ?? null) };
}
