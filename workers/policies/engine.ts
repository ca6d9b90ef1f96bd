/**
 * From the policy that a request asks for to one that can be asked.
 *
 *     const { policy, engine, stored, reference } = await openPolicy(env, caller.tenant.id, asked);
 *     const report = await recheckRun(folded, policy, { crypto, specs, principal, ... });
 *
 * - `asked` comes from `readRecheckRequest(text).policy` or `readPolicy(reader)` (shared/recheck/policy-document.ts).
 * - Open a policy once and ask it about any number of runs, one after the other: it keeps nothing from run to run.
 *   `decide` may answer at once or with a promise; use `recheckRun`, which takes both.
 * - Fold with `keepViews: policy.readsView !== false`.
 * - A latest version is settled when it is opened. `reference` is the JSON text of a policy that names the same one again:
 *   a job keeps it with the hash and the identity, and opens it with `reopenPolicy` (reopen.ts) when it goes on.
 * - `engine: "decisions"` answers for the evaluations of one run only: a job over many runs refuses it.
 * - Call `close()` when done, also after a failure: a module's sandbox ends with it.
 *
 * Throws problems: 404 `not-found` for a stored policy that the tenant does not have (another tenant's looks the same),
 * 422 `invalid-policy` with a pointer, 422 `engine-disabled` for an engine that is off here, 503 where D1 is away, is filled
 * again, or holds what nobody stored.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { RunsealError } from "../../shared/errors.ts";
import { JsonReader } from "../../shared/json/reader.ts";
import { decisionsPolicy } from "../../shared/recheck/decisions.ts";
import type { Policy } from "../../shared/recheck/policy.ts";
import type { AskedPolicy, EngineName, PolicyDocument } from "../../shared/recheck/policy-document.ts";
import { documentHash, documentText, readPolicy } from "../../shared/recheck/policy-document.ts";
import { within } from "../../shared/recheck/request.ts";
import { rulesPolicy } from "../../shared/recheck/rules.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import { requireRebuilt } from "../logs/read.ts";
import { openCedar } from "./cedar.ts";
import { openModule } from "./module.ts";
import { readVersion, type StoredPolicy } from "./store.ts";

/** A version of a stored policy. */
export interface StoredVersion {
  readonly name: string;
  readonly version: number;
  /** Hex SHA-256 of the policy's canonical JSON, as the system log has it. */
  readonly hash: string;
}

export interface OpenedPolicy {
  readonly policy: Policy;
  readonly engine: EngineName | "decisions";
  /** Null for a policy that came with the request. */
  readonly stored: StoredVersion | null;
  /** Hex SHA-256 of the canonical JSON of what is asked; null for decisions, which have no source. */
  readonly hash: string | null;
  /** JSON text that `readPolicy` reads as the same policy, version and all; null for decisions. */
  readonly reference: string | null;
  /** Lets go of what the engine holds. */
  close(): void;
}

/** Makes the policy ready to be asked; see above. */
export async function openPolicy(env: Env, tenant: string, asked: AskedPolicy): Promise<OpenedPolicy> {
  if (asked.kind === "decisions") {
    const policy = decisionsPolicy(asked.decisions);
    return { policy, engine: "decisions", stored: null, hash: null, reference: null, close() {} };
  }
  if (asked.kind === "inline") {
    const { document } = asked;
    const opened = await openDocument(env, tenant, document);
    const hash = documentHash(nativeCrypto, document);
    return { ...opened, engine: document.engine, stored: null, hash, reference: documentText(document) };
  }
  await requireRebuilt(env, tenant);
  const row = await readVersion(env.DB, tenant, asked.name, asked.version);
  if (row === null) throw new Problem("not-found", { pointer: asked.pointer });
  return openVersion(env, tenant, row);
}

/** The engine over a stored version. Throws what `openDocument` does, and 503 `index-conflict` for a source that is none. */
export async function openVersion(
  env: Env,
  tenant: string,
  { name, version, hash, source }: StoredPolicy,
): Promise<OpenedPolicy> {
  const document = storedDocument(source);
  const opened = await openDocument(env, tenant, document);
  const reference = JSON.stringify({ name, version });
  return { ...opened, engine: document.engine, stored: { name, version, hash }, hash, reference };
}

/**
 * The engine over a policy's source. Throws 422 `invalid-policy` with a pointer into what was sent, and 422
 * `engine-disabled`.
 */
export async function openDocument(
  env: Env,
  tenant: string,
  document: PolicyDocument,
): Promise<Pick<OpenedPolicy, "policy" | "close">> {
  try {
    switch (document.engine) {
      case "rules": {
        const policy = within(document.pointer, () => rulesPolicy(document.source, nativeCrypto));
        return { policy, close() {} };
      }
      case "cedar":
        return { policy: await openCedar(document), close() {} };
      case "module":
        return await openModule(env, tenant, document);
    }
  } catch (error) {
    throw policyProblem(error);
  }
}

/** The policy as a report names it. */
export function usedPolicy({ engine, hash, stored }: OpenedPolicy): {
  engine: OpenedPolicy["engine"];
  hash?: string;
  name?: string;
  version?: number;
} {
  return {
    engine,
    ...(hash === null ? {} : { hash }),
    ...(stored === null ? {} : { name: stored.name, version: stored.version }),
  };
}

/** A refusal of a policy as the problem that the caller sees; any other error is given back. */
export function policyProblem(error: unknown): unknown {
  if (!(error instanceof RunsealError)) return error;
  const code = error.code === "json-syntax" ? "json-syntax" : "invalid-policy";
  return new Problem(code, { pointer: error.pointer ?? "", detail: error.message });
}

/** A stored source as the document that it is: it was checked when it was stored. Throws 503 `index-conflict` for another. */
export function storedDocument(source: string): PolicyDocument {
  try {
    const asked = readPolicy(new JsonReader(source));
    if (asked.kind === "inline") return asked.document;
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
  }
  throw new Problem("index-conflict", { detail: "what is stored as a policy is none" });
}
