/**
 * Stored tool specs: in R2 first, under `t/<tenant>/tools/<hash>`, then in D1, which readers ask. The object is the
 * spec's canonical text, so that its hash is its name.
 *
 * @module
 */
import { Hash } from "../../shared/api/schemas.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import { logEvent } from "../log-event.ts";
import { askMirror, forEach, type TakenBack } from "../mirror.ts";
import { type ReadSpec, readSpec } from "./spec.ts";

/** Bytes of a spec: what a row of D1 holds. */
const MAX_STORED_BYTES = 2_000_000;

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

/** Stores the spec; a second time changes nothing. Throws 503 problems. */
export async function storeSpec(env: Env, tenant: string, spec: ReadSpec): Promise<void> {
  await askMirror(env, async (bucket) => {
    const there = await bucket.head(objectKey(tenant, spec.hash));
    // R2 computed this checksum itself: an object of another content is put again.
    if (there?.checksums.toJSON().sha256 === spec.hash) return;
    await bucket.put(objectKey(tenant, spec.hash), spec.text, { sha256: spec.hash });
  });
  await insertSpec(env.DB, tenant, spec, new Date());
}

async function insertSpec(
  db: D1Database,
  tenant: string,
  { hash, text }: ReadSpec,
  createdAt: Date,
): Promise<void> {
  await db
    .prepare("INSERT INTO tool_specs VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")
    .bind(tenant, hash, text, createdAt.toISOString())
    .run();
}

/** A spec's canonical text; null where D1 has none. */
export async function findSpec(db: D1Database, tenant: string, hash: string): Promise<string | null> {
  const row = await db
    .prepare("SELECT spec FROM tool_specs WHERE tenant = ?1 AND hash = ?2")
    .bind(tenant, hash)
    .first<{ spec: string }>();
  return row?.spec ?? null;
}

/** Those of the hashes that D1 has a spec of. */
export async function storedSpecs(
  db: D1Database,
  tenant: string,
  hashes: readonly string[],
): Promise<ReadonlySet<string>> {
  const { results } = await db
    .prepare("SELECT hash FROM tool_specs WHERE tenant = ?1 AND hash IN (SELECT value FROM json_each(?2))")
    .bind(tenant, JSON.stringify(hashes))
    .all<{ hash: string }>();
  return new Set(results.map(({ hash }) => hash));
}

/** Takes back from R2 what D1 lost of these specs. Throws 503 problems. */
export async function takeBackSpecs(env: Env, tenant: string, hashes: readonly string[]): Promise<TakenBack> {
  let [restored, refused] = [0, 0];
  const take = async (hash: string): Promise<void> => {
    const object = await askMirror(env, async (bucket) => {
      const found = await bucket.get(objectKey(tenant, hash));
      if (found === null) return null;
      if (found.size <= MAX_STORED_BYTES) return { text: await found.text(), uploaded: found.uploaded };
      await found.body.cancel();
      return { text: "", uploaded: found.uploaded };
    });
    if (object === null) return;
    if (isSpec(object.text, hash)) {
      await insertSpec(env.DB, tenant, { text: object.text, hash }, object.uploaded);
      restored += 1;
      return;
    }
    refused += 1;
    logEvent("copy-refused", { tenant, key: `${SPEC_COPIES}${hash}`, why: "not the spec of its hash" });
  };
  await forEach(hashes, take);
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
