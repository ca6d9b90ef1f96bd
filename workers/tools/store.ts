/**
 * Stored tool specs: in R2 first, under `t/<tenant>/tools/<hash>`, then in D1, which readers ask. The object is the
 * spec's canonical text, so that its hash is its name.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { Hash } from "../../shared/api/schemas.ts";
import { hashText } from "../../shared/recheck/hash.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import { isRefusedRow } from "../index-db/refused-row.ts";
import { logEvent } from "../log-event.ts";
import { askMirror, forEach, getText, type TakenBack } from "../mirror.ts";
import { type ReadSpec, readSpec } from "./spec.ts";

/** Bytes of a spec: what a row of D1 holds. */
const MAX_STORED_BYTES = 2_000_000;
/** Characters of rows that are read together. */
const MAX_READ = 4 * 1024 * 1024;

/** Where the specs of a tenant lie in R2, after `t/<tenant>/`. */
export const SPEC_COPIES = "tools/";

/** The hash that a key after `t/<tenant>/` names; null for one of something else. */
export function parseSpecKey(key: string): string | null {
  const hash = key.startsWith(SPEC_COPIES) ? key.slice(SPEC_COPIES.length) : "";
  return Hash.safeParse(hash).success ? hash : null;
}

function objectKey(tenant: string, hash: string): string {
  return `t/${tenant}/${SPEC_COPIES}${hash}`;
}

/** Stores the spec; a second time changes nothing but what somebody altered. Throws 503 problems. */
export async function storeSpec(env: Env, tenant: string, spec: ReadSpec): Promise<void> {
  await askMirror(env, async (bucket) => {
    const there = await bucket.head(objectKey(tenant, spec.hash));
    // R2 computed this checksum itself: an object of another content is put again.
    if (there?.checksums.toJSON().sha256 === spec.hash) return;
    await bucket.put(objectKey(tenant, spec.hash), spec.text, { sha256: spec.hash });
  });
  await writeSpec(env.DB, tenant, spec, new Date());
}

/** Writes the row, in the place of one with another text, too. */
async function writeSpec(
  db: D1Database,
  tenant: string,
  { hash, text }: ReadSpec,
  createdAt: Date,
): Promise<void> {
  await db
    .prepare(
      `INSERT INTO tool_specs (tenant, hash, spec, created_at) VALUES (?1, ?2, ?3, ?4)
       ON CONFLICT (tenant, hash) DO UPDATE SET spec = excluded.spec WHERE spec <> excluded.spec`,
    )
    .bind(tenant, hash, text, createdAt.toISOString())
    .run();
}

/** Whether a row's text is the spec of its hash: somebody else may have written to D1. */
export function isOfHash({ hash, spec }: SpecRow): boolean {
  return hashText(nativeCrypto, spec) === hash;
}

export interface SpecRow {
  readonly hash: string;
  /** Canonical text, unless it was altered. */
  readonly spec: string;
}

/** The rows that D1 has of these hashes. */
export async function specRows(
  db: D1Database,
  tenant: string,
  hashes: readonly string[],
): Promise<readonly SpecRow[]> {
  const { results } = await db
    .prepare(
      "SELECT hash, spec FROM tool_specs WHERE tenant = ?1 AND hash IN (SELECT value FROM json_each(?2))",
    )
    .bind(tenant, JSON.stringify(hashes))
    .all<SpecRow>();
  return results;
}

/** Those of the hashes that D1 has the spec of. A row with another text does not count. */
export async function storedSpecs(
  db: D1Database,
  tenant: string,
  hashes: readonly string[],
): Promise<ReadonlySet<string>> {
  const { results: sizes } = await db
    .prepare(
      `SELECT hash, length(spec) AS length FROM tool_specs
       WHERE tenant = ?1 AND hash IN (SELECT value FROM json_each(?2))`,
    )
    .bind(tenant, JSON.stringify(hashes))
    .all<{ hash: string; length: number }>();
  const stored = new Set<string>();
  let part: string[] = [];
  let sum = 0;
  const check = async (): Promise<void> => {
    for (const row of await specRows(db, tenant, part)) if (isOfHash(row)) stored.add(row.hash);
  };
  for (const { hash, length } of sizes) {
    if (part.length > 0 && sum + length > MAX_READ) {
      await check();
      part = [];
      sum = 0;
    }
    part.push(hash);
    sum += length;
  }
  if (part.length > 0) await check();
  return stored;
}

/**
 * Takes back from R2 what D1 lost of a spec, or has altered. `altered` where R2 holds something else under its hash, null
 * where it has nothing. Throws 503 problems.
 */
export async function takeBackSpec(
  env: Env,
  tenant: string,
  hash: string,
): Promise<ReadSpec | "altered" | null> {
  const object = await getText(env, objectKey(tenant, hash), MAX_STORED_BYTES);
  if (object === null) return null;
  const { text, uploaded } = object;
  let why = "not the spec of its hash";
  if (isSpec(text, hash)) {
    try {
      await writeSpec(env.DB, tenant, { text, hash }, uploaded);
      return { text, hash };
    } catch (error) {
      if (!isRefusedRow(error)) throw error;
      why = "D1 does not take the row";
    }
  }
  logEvent("copy-refused", { tenant, key: `${SPEC_COPIES}${hash}`, why });
  return "altered";
}

/**
 * Which of the hashes R2 holds something under, from lists of so many keys. In order of hash: `untold` last ones are more
 * than these lists tell of. Throws 503 problems.
 */
export async function specsInMirror(
  env: Env,
  tenant: string,
  hashes: readonly string[],
  { lists, keys }: { readonly lists: number; readonly keys: number },
): Promise<{
  readonly held: readonly string[];
  readonly missing: readonly string[];
  readonly untold: number;
}> {
  const left = [...hashes].sort();
  const held: string[] = [];
  const missing: string[] = [];
  for (let n = 0; n < lists && left[0] !== undefined; n++) {
    // All but its last digit sorts right before it: keys that nobody asks for are left out between two lists.
    const startAfter = objectKey(tenant, left[0].slice(0, -1));
    const page = await askMirror(env, (bucket) =>
      bucket.list({ prefix: objectKey(tenant, ""), startAfter, limit: keys }),
    );
    const there = new Set(page.objects.map(({ key }) => key));
    const last = page.truncated ? (page.objects.at(-1)?.key ?? "") : null;
    const told = left.findIndex((hash) => last !== null && objectKey(tenant, hash) > last);
    for (const hash of left.splice(0, told < 0 ? left.length : told))
      (there.has(objectKey(tenant, hash)) ? held : missing).push(hash);
  }
  return { held, missing, untold: left.length };
}

/** Takes back from R2 what D1 lost of these specs, or has altered. Throws 503 problems. */
export async function takeBackSpecs(env: Env, tenant: string, hashes: readonly string[]): Promise<TakenBack> {
  let [restored, refused] = [0, 0];
  await forEach(hashes, async (hash) => {
    const spec = await takeBackSpec(env, tenant, hash);
    if (spec === "altered") refused += 1;
    else if (spec !== null) restored += 1;
  });
  return { restored, refused };
}

/** Whether the text is, as it stands, the spec of this hash. */
function isSpec(text: string, hash: string): boolean {
  try {
    const spec = readSpec(text);
    return spec.hash === hash && spec.text === text;
  } catch (error) {
    if (error instanceof Problem) return false;
    throw error;
  }
}
