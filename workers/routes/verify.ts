/**
 * Verification: of what is stored, and of a bundle that somebody uploads.
 *
 * @module
 */
import { z } from "zod";
import { nativeCrypto } from "../../native/crypto.ts";
import { Hash, PrincipalName, VerifyReport } from "../../shared/api/schemas.ts";
import { FieldSelection } from "../../shared/entry/field-selection.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { NoteKey } from "../../shared/note/vkey.ts";
import { parseWitnessList } from "../../shared/note/witness-list.ts";
import type { KeptHead } from "../../shared/verify/bundle.ts";
import { BundleVerifier } from "../../shared/verify/bundle.ts";
import type { Caller } from "../http/auth.ts";
import { mayUseAllPrincipals } from "../http/auth.ts";
import { Generation } from "../http/generation.ts";
import { lines } from "../http/lines.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, tenantRoute } from "../http/route.ts";
import { exportBundle } from "../logs/export.ts";
import type { Disclosure } from "../logs/export-values.ts";
import { openLog } from "../logs/open-log.ts";
import { verifyStored } from "../logs/verify-stored.ts";

const SeqParam = z.coerce.number().int().min(1).max(Number.MAX_SAFE_INTEGER);
const HeadParam = z
  .string()
  .regex(/^[1-9][0-9]{0,15}:[0-9a-f]{64}$/)
  .optional()
  .describe("a head kept elsewhere, SEQ:HASH");
/** Bytes of an uploaded bundle: what one request can hash within its CPU time. */
const MAX_BUNDLE_BYTES = 64 * 1024 * 1024;

/** Characters of a list of witnesses: what a request's address has room for. */
const MAX_WITNESS_CHARS = 8192;

/** Throws a 400 problem that names the line. */
function witnessesOf(list: string | undefined): NoteKey[] {
  try {
    return list === undefined ? [] : parseWitnessList(nativeCrypto, list);
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    throw new Problem("invalid-request", { pointer: "?witnesses", detail: `query: ${error.message}` });
  }
}

function keptHeadOf(text: string | undefined): KeptHead | undefined {
  if (text === undefined) return undefined;
  const [seq = "", hash = ""] = text.split(":");
  return { seq: Number(seq), hash };
}

const stored = tenantRoute(
  {
    method: "GET",
    path: "/v1/principals/{p}/verify",
    operation: "verifyLog",
    tag: "verification",
    scope: "verify",
    summary: "Walk the stored entries and report the first break",
    description: "A log too long for one request is walked in parts: go on with from = next.",
    params: z.object({ p: PrincipalName }),
    query: z.object({
      from: SeqParam.optional(),
      to: SeqParam.optional(),
      head: HeadParam,
      generation: Generation.optional(),
    }),
    answers: { 200: { description: "the report, whatever its verdict", schema: VerifyReport } },
  },
  async ({ env, caller, params, query }) => {
    const from = query.from ?? 1;
    const keptHead = keptHeadOf(query.head);
    if (query.to !== undefined && query.to < from) {
      throw new Problem("invalid-request", { pointer: "?to", detail: "query: to is before from" });
    }
    if (
      keptHead !== undefined &&
      (keptHead.seq < from || (query.to !== undefined && keptHead.seq > query.to))
    ) {
      throw new Problem("invalid-request", {
        pointer: "?head",
        detail: "query: the kept head is outside the range",
      });
    }
    const log = await openLog(env, caller, params.p, query.generation);
    return json(await verifyStored(env, log, { from, to: query.to, keptHead }));
  },
);

const upload = tenantRoute(
  {
    method: "POST",
    path: "/v1/verify",
    operation: "verifyBundle",
    tag: "verification",
    scope: "verify",
    summary: "Verify an uploaded bundle, trusting nothing that is stored here",
    description:
      "What it shows is as good as the service that runs it: offline, `runseal verify` needs nobody. A checkpoint that was kept can be pinned there alone.",
    query: z.object({
      registry: Hash.optional().describe("the registry id to pin"),
      head: HeadParam,
      witnesses: z
        .string()
        .max(MAX_WITNESS_CHARS)
        .optional()
        .describe(
          "vkeys of the witnesses whose cosignatures are to count, one a line; percent-encoded, for a plus would become a space",
        ),
    }),
    rawBody: { schema: z.string(), contentTypes: ["application/x-ndjson"], limit: MAX_BUNDLE_BYTES },
    answers: { 200: { description: "the report, whatever its verdict", schema: VerifyReport } },
  },
  async ({ request, query }) => {
    const keptHead = keptHeadOf(query.head);
    const verifier = new BundleVerifier(nativeCrypto, {
      verifiedBy: "runseal service",
      ...(query.registry === undefined ? {} : { registryId: query.registry }),
      ...(keptHead === undefined ? {} : { keptHead }),
      witnesses: witnessesOf(query.witnesses),
    });
    for await (const line of lines(request, MAX_BUNDLE_BYTES)) verifier.line(line);
    return json(verifier.finish());
  },
);

interface ValuesQuery {
  readonly content?: "true" | "false" | undefined;
  readonly disclose?: string | undefined;
  readonly recipient?: string | undefined;
}

function valuesOf(caller: Caller, { content, disclose, recipient }: ValuesQuery): Disclosure | null {
  if (disclose === undefined) return content === "false" ? null : { selection: null, recipient, caller };
  const refuse = (pointer: string, detail: string): Problem =>
    new Problem("invalid-request", { pointer, detail: `query: ${detail}` });
  if (content !== undefined) throw refuse("?content", "either content or disclose is given");
  try {
    return { selection: FieldSelection.of(disclose.split(",")), recipient, caller };
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    throw refuse("?disclose", error.message);
  }
}

const exported = tenantRoute(
  {
    method: "GET",
    path: "/v1/principals/{p}/export",
    operation: "exportLog",
    tag: "verification",
    scope: "read",
    summary: "The bundle for offline verification",
    description:
      "Entries outside from and to are there as hashes alone, so that the signed root can be checked. That values are handed out is on $system before they are: disclosure.made.",
    params: z.object({ p: PrincipalName }),
    query: z.object({
      from: SeqParam.optional(),
      to: SeqParam.optional(),
      content: z.enum(["true", "false"]).optional().describe("false leaves the values out"),
      disclose: z
        .string()
        .max(10_000)
        .optional()
        .describe("only these values, as section.name with commas between: action.tool,outcome.result"),
      recipient: z
        .string()
        .min(1)
        .max(200)
        .optional()
        .describe("to whom values are handed out, for the record"),
      generation: Generation.optional(),
      anchors: z
        .enum(["true", "false"])
        .optional()
        .describe(
          "false leaves out the lines of the logs of heads, which name the tenant's other logs; only keys of all principals get them",
        ),
    }),
    answers: { 200: { description: "bundle.v1", contentType: "application/x-ndjson" } },
  },
  async ({ env, caller, params, query, execution }) => {
    const log = await openLog(env, caller, params.p, query.generation);
    return exportBundle(env, execution, log, {
      from: query.from ?? 1,
      to: query.to,
      values: valuesOf(caller, query),
      anchors: query.anchors !== "false" && mayUseAllPrincipals(caller),
    });
  },
);

export const verifyRoutes: readonly Route[] = [stored, upload, exported];
