/**
 * Stored policies and their versions (docs/policies.md).
 *
 * @module
 */
import { z } from "zod";
import { Hash, OpaqueId } from "../../shared/api/schemas.ts";
import { RunsealError } from "../../shared/errors.ts";
import { JsonReader } from "../../shared/json/reader.ts";
import { decodeUtf8 } from "../../shared/json/utf8.ts";
import { changeJson, rulesDiff } from "../../shared/recheck/policy-diff.ts";
import { ENGINES, type PolicyDocument, readPolicy } from "../../shared/recheck/policy-document.ts";
import type { Env } from "../env.ts";
import { readBody } from "../http/body.ts";
import { decodeCursor, encodeCursor } from "../http/cursor.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, jsonText, tenantRoute } from "../http/route.ts";
import { requireRebuilt } from "../logs/read.ts";
import { policyProblem, storedDocument } from "../policies/engine.ts";
import { putPolicy } from "../policies/put.ts";
import type { PolicyVersion, StoredPolicy } from "../policies/store.ts";
import { listLatest, listVersions, readVersion } from "../policies/store.ts";

/** Bytes of a policy's body: a row of D1 holds 2 MB. */
const MAX_POLICY_BYTES = 1024 * 1024;

const Version = z.coerce.number().int().min(1).max(999_999_999);
const Limit = z.coerce.number().int().min(1).max(1000).default(100);
const Cursor = z.string().max(200).optional();
const Names = z.object({ name: OpaqueId.describe("the policy's name, in the clear and permanent") });

export const PolicyOut = z.object({
  name: OpaqueId,
  version: z.int().min(1),
  engine: z.enum(ENGINES),
  policy_id: z.string().describe("the identity that evaluations under this policy record"),
  hash: Hash.describe("SHA-256 of the policy's canonical JSON, as its policy.stored entry has it"),
  created_at: z.string(),
});
/** The policy itself: exactly one of its sources. */
export const PolicySource = z.object({
  engine: z.enum(ENGINES).optional(),
  rules: z.record(z.string(), z.unknown()).optional(),
  cedar: z
    .union([z.string(), z.record(z.string(), z.unknown())])
    .optional()
    .describe("policies as text, or {policies, entities?, principal?, action?, resource?, args?}"),
  module: z.string().optional().describe("JavaScript with `export function decide(request, run)`"),
  policy_id: z.string().optional().describe("with cedar and module: in place of the computed identity"),
});

function out({ name, version, engine, policyId, hash, createdAt }: PolicyVersion): z.infer<typeof PolicyOut> {
  return { name, version, engine, policy_id: policyId, hash, created_at: createdAt };
}

/** The body as a policy with its source. Throws 400 and 422 problems with a pointer. */
async function readDocument(request: Request): Promise<PolicyDocument> {
  const { text, ok } = decodeUtf8(await readBody(request, MAX_POLICY_BYTES));
  if (!ok) throw new Problem("json-syntax", { pointer: "", detail: "the body is not UTF-8" });
  try {
    const reader = new JsonReader(text);
    const asked = readPolicy(reader);
    reader.finish();
    if (asked.kind === "inline") return asked.document;
  } catch (error) {
    throw error instanceof RunsealError ? policyProblem(error) : error;
  }
  throw new Problem("invalid-policy", { pointer: "", detail: "a stored policy is rules, cedar or a module" });
}

async function versionOrNone(
  env: Env,
  tenant: string,
  name: string,
  version: number | null,
): Promise<StoredPolicy> {
  const found = await readVersion(env.DB, tenant, name, version);
  if (found === null) throw new Problem("not-found");
  return found;
}

const put = tenantRoute(
  {
    method: "PUT",
    path: "/v1/policies/{name}",
    operation: "putPolicy",
    tag: "policies",
    scope: "policy",
    summary: "Store a policy: a new version, or the one that has this content already",
    description:
      "The policy is checked whole. Its version and hash are a policy.stored entry on the tenant's $system log, and its source is in R2, before anybody can read it. With `version` it becomes that version or nothing.",
    params: Names,
    query: z.object({ version: Version.optional() }),
    rawBody: { schema: PolicySource, contentTypes: ["application/json"], limit: MAX_POLICY_BYTES },
    answers: {
      200: { description: "a version has this content already", schema: PolicyOut },
      201: { description: "a new version, or one that is shown again", schema: PolicyOut },
    },
  },
  async ({ request, env, caller, params, query }) => {
    const document = await readDocument(request);
    const { policy, created } = await putPolicy(env, caller.tenant, {
      name: params.name,
      document,
      version: query.version ?? null,
      by: caller.key.id,
    });
    return json(out(policy), created ? 201 : 200);
  },
);

const list = tenantRoute(
  {
    method: "GET",
    path: "/v1/policies",
    operation: "listPolicies",
    tag: "policies",
    scope: "read",
    summary: "The latest version of each policy, by name",
    query: z.object({ limit: Limit, cursor: Cursor }),
    answers: {
      200: {
        description: "a page",
        schema: z.object({ policies: z.array(PolicyOut), next_cursor: z.string().nullable() }),
      },
    },
  },
  async ({ env, caller, query }) => {
    await requireRebuilt(env, caller.tenant.id);
    const scope = [caller.tenant.id, "policies"];
    const passed = decodeCursor(scope, query.cursor);
    const found = await listLatest(env.DB, caller.tenant.id, passed, query.limit);
    const next = found.length === query.limit ? encodeCursor(scope, passed + found.length) : null;
    return json({ policies: found.map(out), next_cursor: next });
  },
);

const get = tenantRoute(
  {
    method: "GET",
    path: "/v1/policies/{name}",
    operation: "getPolicy",
    tag: "policies",
    scope: "read",
    summary: "A policy with its source: the latest version, or the one asked for",
    params: Names,
    query: z.object({ version: Version.optional() }),
    answers: {
      200: { description: "the policy", schema: PolicyOut.extend({ policy: PolicySource }) },
    },
  },
  async ({ env, caller, params, query }) => {
    await requireRebuilt(env, caller.tenant.id);
    const found = await versionOrNone(env, caller.tenant.id, params.name, query.version ?? null);
    // Joined as text: a number of the policy keeps its digits.
    return jsonText(`${JSON.stringify(out(found)).slice(0, -1)},"policy":${found.source}}`);
  },
);

const versions = tenantRoute(
  {
    method: "GET",
    path: "/v1/policies/{name}/versions",
    operation: "listPolicyVersions",
    tag: "policies",
    scope: "read",
    summary: "The versions of a policy, newest first",
    params: Names,
    query: z.object({ limit: Limit, cursor: Cursor }),
    answers: {
      200: {
        description: "a page",
        schema: z.object({ versions: z.array(PolicyOut), next_cursor: z.string().nullable() }),
      },
    },
  },
  async ({ env, caller, params, query }) => {
    await requireRebuilt(env, caller.tenant.id);
    const scope = [caller.tenant.id, "policies", params.name];
    const before = decodeCursor(scope, query.cursor);
    const found = await listVersions(
      env.DB,
      caller.tenant.id,
      params.name,
      before === 0 ? null : before,
      query.limit,
    );
    if (found.length === 0 && before === 0) throw new Problem("not-found");
    const last = found.at(-1);
    const more = found.length === query.limit && last !== undefined && last.version > 1;
    return json({
      versions: found.map(out),
      next_cursor: more ? encodeCursor(scope, last.version) : null,
    });
  },
);

const Change = z.object({
  what: z.enum(["policy_id", "side_effect", "tool"]),
  name: z.string().optional(),
  server: z.string().optional(),
  from: z.unknown().optional(),
  to: z.unknown().optional(),
});

const diff = tenantRoute(
  {
    method: "GET",
    path: "/v1/policies/{name}/diff",
    operation: "diffPolicy",
    tag: "policies",
    scope: "read",
    summary: "What differs between two versions: their identities and, for rules, each class and tool",
    params: Names,
    query: z.object({ from: Version, to: Version.optional() }),
    answers: {
      200: {
        description: "the difference",
        schema: z.object({
          from: PolicyOut,
          to: PolicyOut,
          same: z.boolean().describe("whether the contents are the same"),
          identity: z.enum(["changed", "unchanged"]),
          changes: z.array(Change).nullable().describe("null where one of them is not rules"),
        }),
      },
    },
  },
  async ({ env, caller, params, query }) => {
    await requireRebuilt(env, caller.tenant.id);
    const from = await versionOrNone(env, caller.tenant.id, params.name, query.from);
    const to = await versionOrNone(env, caller.tenant.id, params.name, query.to ?? null);
    const head = {
      from: out(from),
      to: out(to),
      same: from.hash === to.hash,
      identity: from.policyId === to.policyId ? "unchanged" : "changed",
    };
    const changes =
      from.engine === "rules" && to.engine === "rules"
        ? `[${rulesDiff(storedDocument(from.source).source, storedDocument(to.source).source).map(changeJson).join(",")}]`
        : "null";
    return jsonText(`${JSON.stringify(head).slice(0, -1)},"changes":${changes}}`);
  },
);

export const policyRoutes: readonly Route[] = [put, list, get, versions, diff];
