/**
 * Kinds of a tenant's own, declared by prefix (docs/kinds.md, "Your own kinds").
 *
 * @module
 */
import { z } from "zod";
import type {
  DeclaredVersion,
  StoredDeclaration,
} from "../../durable-objects/tenant-directory/extensions.ts";
import type { TenantRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { DeclarationOut, ExtensionOut, ExtensionsOut } from "../../shared/api/extensions.ts";
import { isProblemCode } from "../../shared/api/problems.ts";
import { toHex, utf8 } from "../../shared/bytes.ts";
import { RunsealError } from "../../shared/errors.ts";
import {
  type Declaration,
  DeclarationIn,
  MAX_DECLARATION_BYTES,
  readDeclaration,
} from "../../shared/kinds/declaration.ts";
import { EXTENSION_PREFIX } from "../../shared/kinds/extension.ts";
import type { Env } from "../env.ts";
import type { Caller } from "../http/auth.ts";
import { mayUseAllPrincipals } from "../http/auth.ts";
import { readBody } from "../http/body.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, jsonText, tenantRoute } from "../http/route.ts";
import { forgetExtensions } from "../logs/extensions.ts";
import { appendSystemEntry } from "../logs/system-log.ts";

const params = z.object({ prefix: z.string().regex(EXTENSION_PREFIX) });
/** Numbers that one declaration passes over, because the log knows another content under them. */
const MAX_ATTEMPTS = 16;

function out({ prefix, version, hash, createdAt }: DeclaredVersion): z.infer<typeof DeclarationOut> {
  return { prefix, version, hash, created_at: createdAt };
}

/** The declaration as canonical text, checked whole. Throws 400, 413 and 422 problems with a pointer. */
async function readText(request: Request, prefix: string): Promise<string> {
  const bytes = await readBody(request, MAX_DECLARATION_BYTES);
  try {
    return readDeclaration(prefix, bytes).text;
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    const code = isProblemCode(error.code) ? error.code : "invalid-extension";
    throw new Problem(code, { pointer: error.pointer ?? "", detail: error.message });
  }
}

/**
 * Stores a version, once for each content in a row. The order is: the version is taken, unseen; the entry is durable on
 * `$system`; the version holds. A crash between leaves a version that does not hold, which the same request finishes.
 */
async function declare(
  env: Env,
  tenant: TenantRecord,
  prefix: string,
  text: string,
  by: string,
): Promise<{ readonly declared: DeclaredVersion; readonly created: boolean }> {
  const directory = env.TENANT_DIRECTORY.getByName(tenant.id);
  const hash = toHex(nativeCrypto.sha256(utf8(text)));
  const content = { prefix, hash, text, createdAt: new Date().toISOString() };
  for (let least = 1, attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const taken = await directory.takeExtension(content, least);
    if ("refused" in taken) {
      throw new Problem("extension-limit", { detail: `no more ${taken.refused} are kept` });
    }
    const { version, createdAt, holds } = taken;
    const declared = { prefix, version, hash, createdAt };
    if (holds) return { declared, created: false };
    const differs = await appendSystemEntry(env, tenant, {
      id: `extension.${prefix}.${version}`,
      kind: "extension.declared",
      action: { prefix, version, hash, by },
    });
    // A directory that was set back gave a number out again: what the log recorded under it stays its meaning.
    if (differs.includes("/action/hash")) least = version + 1;
    else return { declared, created: await directory.holdExtension(prefix, version) };
  }
  throw new Problem("unavailable", { detail: "the next version could not be found", retryAfter: 1 });
}

/** Throws a 403 problem: a declaration decides what every principal may record. */
function requireAllPrincipals(caller: Caller): void {
  if (!mayUseAllPrincipals(caller))
    throw new Problem("forbidden", { detail: "the key is kept to some principals, and a prefix is for all" });
}

const put = tenantRoute(
  {
    method: "PUT",
    path: "/v1/extensions/{prefix}",
    operation: "putExtension",
    tag: "extensions",
    scope: "policy",
    summary: "Declare the kinds under a prefix, in place of those before",
    description:
      "Entries of kind ext.<prefix>.<name> are checked against the newest version: a name that it does not have, and fields that are not as its schemas demand, are refused. The version and its hash are an extension.declared entry on the tenant's $system log before it holds; it holds everywhere within 60 seconds. The key is for all principals.",
    params,
    rawBody: {
      schema: DeclarationIn,
      contentTypes: ["application/json"],
      limit: MAX_DECLARATION_BYTES,
    },
    answers: {
      200: { description: "this content holds already, or a newer version does", schema: DeclarationOut },
      201: { description: "a new version", schema: DeclarationOut },
    },
  },
  async ({ request, env, caller, params: { prefix } }) => {
    requireAllPrincipals(caller);
    const text = await readText(request, prefix);
    const { declared, created } = await declare(env, caller.tenant, prefix, text, caller.key.id);
    forgetExtensions(caller.tenant.id);
    return json(out(declared), created ? 201 : 200);
  },
);

function namesOf({ text }: StoredDeclaration): string[] {
  return Object.keys((JSON.parse(text) as Declaration).kinds);
}

const list = tenantRoute(
  {
    method: "GET",
    path: "/v1/extensions",
    operation: "listExtensions",
    tag: "extensions",
    scope: "read",
    summary: "The prefixes that are declared, each with the version that holds and the names of its kinds",
    answers: { 200: { description: "all of them, by prefix", schema: ExtensionsOut } },
  },
  async ({ env, caller }) => {
    const stored = await env.TENANT_DIRECTORY.getByName(caller.tenant.id).extensions();
    return json({ extensions: stored.map((each) => ({ ...out(each), kinds: namesOf(each) })) });
  },
);

const get = tenantRoute(
  {
    method: "GET",
    path: "/v1/extensions/{prefix}",
    operation: "getExtension",
    tag: "extensions",
    scope: "read",
    summary: "What is declared under a prefix: the version that holds, or the one asked for",
    params,
    query: z.object({ version: z.coerce.number().int().min(1).max(999_999).optional() }),
    answers: { 200: { description: "the declaration", schema: ExtensionOut } },
  },
  async ({ env, caller, params: { prefix }, query }) => {
    const directory = env.TENANT_DIRECTORY.getByName(caller.tenant.id);
    const found = await directory.extension(prefix, query.version ?? null);
    if (found === null) throw new Problem("not-found");
    // Joined as text: it is what was hashed, number by number.
    return jsonText(`${JSON.stringify(out(found)).slice(0, -1)},"declaration":${found.text}}`);
  },
);

export const extensionRoutes: readonly Route[] = [put, list, get];
