/**
 * A version of a policy as R2 holds it, under `t/<tenant>/policies/<name>/<version>`: canonical JSON, put once and never
 * again. D1 gets the version back from it. Nothing but the time is believed: the source has the hash that the log recorded,
 * name and version are the key's, and the rest follows from the source.
 *
 * @module
 */
import { z } from "zod";
import { nativeCrypto } from "../../native/crypto.ts";
import { OpaqueId } from "../../shared/api/schemas.ts";
import { toHex, utf8 } from "../../shared/bytes.ts";
import { RunsealError } from "../../shared/errors.ts";
import { canonicalJson } from "../../shared/json/canonical.ts";
import { JsonReader } from "../../shared/json/reader.ts";
import { documentText, readPolicy } from "../../shared/recheck/policy-document.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import { logEvent } from "../log-event.ts";
import { askMirror, getText } from "../mirror.ts";
import { documentIdentity } from "./identity.ts";
import type { StoredPolicy, VersionName } from "./store.ts";

/** Bytes of an object: a source of 2 MB, which is what a row of D1 holds, each character escaped. */
const MAX_COPY_BYTES = 12 * 1024 * 1024;

/** Where the copies of a tenant's policies lie, after `t/<tenant>/`. */
export const POLICY_COPIES = "policies/";

const Copy = z.object({ created_at: z.iso.datetime({ precision: 3 }), source: z.string() });

/** The object's key after `t/<tenant>/`. A name has no slash: it is 1 to 128 of `[A-Za-z0-9._:-]`. */
export function policyKey({ name, version }: VersionName): string {
  return `${POLICY_COPIES}${name}/${version}`;
}

/** The version that a key after `t/<tenant>/` is of; null for a key that `policyKey` does not make. */
export function parsePolicyKey(key: string): VersionName | null {
  const [, name, version] = /^policies\/([^/]+)\/([1-9][0-9]{0,8})$/.exec(key) ?? [];
  return name === undefined || !OpaqueId.safeParse(name).success ? null : { name, version: Number(version) };
}

/** A copy that R2 holds; `altered` where it is not one of this version; null where there is none. */
export async function readCopy(
  env: Env,
  tenant: string,
  version: VersionName,
): Promise<StoredPolicy | "altered" | null> {
  const object = await getText(env, `t/${tenant}/${policyKey(version)}`, MAX_COPY_BYTES);
  return object === null ? null : (parseCopy(version, object.text) ?? "altered");
}

function parseCopy(version: VersionName, text: string): StoredPolicy | null {
  return unlessRefused(() => {
    const { created_at: createdAt, source } = Copy.parse(JSON.parse(text));
    return policyOf(version, createdAt, source);
  });
}

/** The version that a source makes: all but its name, its number and its time follow from it. Null where it is no policy. */
export function policyOf(
  { name, version }: VersionName,
  createdAt: string,
  source: string,
): StoredPolicy | null {
  return unlessRefused(() => {
    const asked = readPolicy(new JsonReader(source));
    if (asked.kind !== "inline" || documentText(asked.document) !== source) return null;
    const hash = toHex(nativeCrypto.sha256(utf8(source)));
    const policyId = documentIdentity(asked.document);
    return { name, version, engine: asked.document.engine, policyId, hash, createdAt, source };
  });
}

/** What `read` answers; null where it finds that the text is not what it has to be. */
function unlessRefused<T>(read: () => T | null): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError || error instanceof RunsealError) {
      return null;
    }
    throw error;
  }
}

function copyText({ name, version, engine, policyId, hash, createdAt, source }: StoredPolicy): string {
  return canonicalJson(
    JSON.stringify({ name, version, engine, policy_id: policyId, hash, created_at: createdAt, source }),
  );
}

/**
 * Makes R2 hold the version, whose entry is durable. Throws 503 `mirror-unavailable` where it can't be, also where another
 * object lies in its place: that is never replaced.
 *
 * @returns when the version was first stored, as the copy says
 */
export async function keepCopy(env: Env, tenant: string, policy: StoredPolicy): Promise<string> {
  const there = (await readCopy(env, tenant, policy)) ?? (await createCopy(env, tenant, policy));
  if (there !== null && there !== "altered" && there.hash === policy.hash) return there.createdAt;
  logEvent("copy-altered", { tenant, key: policyKey(policy) });
  throw new Problem("mirror-unavailable", {
    retryAfter: 60,
    detail: "R2 holds another object in the place of this version",
  });
}

/** Puts the copy where there is none; answers the one that is there then. */
async function createCopy(
  env: Env,
  tenant: string,
  policy: StoredPolicy,
): Promise<StoredPolicy | "altered" | null> {
  const put = await askMirror(env, (bucket) =>
    bucket.put(`t/${tenant}/${policyKey(policy)}`, copyText(policy), {
      onlyIf: new Headers({ "If-None-Match": "*" }),
      httpMetadata: { contentType: "application/json" },
    }),
  );
  return put === null ? readCopy(env, tenant, policy) : policy;
}
