/**
 * The shapes of audits over HTTP (docs/audit.md).
 *
 * @module
 */
import { z } from "zod";
import { MAX_CANDIDATES } from "../audit/langbot-query.ts";
import { Hash, Head, PrincipalName, Seq } from "./schemas.ts";

const Text = z.string().max(16_384);

export const AuditMode = z
  .enum(["strict", "runner-native"])
  .describe("a call of a tool that the run may not use: strict, a failure; runner-native, a warning");
export const Unrecorded = z
  .enum(["accept"])
  .describe("what the record has no place for is a note, and does not keep the audit from passing");

/** A run that is named, with what is expected of it. */
export const AuditQuery = z.object({
  mode: AuditMode.default("strict"),
  expected_tool_name: Text.min(1).optional().describe("a tool that the run has to call exactly once"),
  expected_parameters: Text.optional().describe("the parameters of that call, the text of a JSON object"),
  expected_result_text: Text.optional().describe("a text of its result has to equal it"),
  unrecorded: Unrecorded.optional(),
  format: z.enum(["json", "text"]).default("json"),
});

/** A run that is chosen among the tenant's. */
export const AuditIn = z.strictObject({
  run_id: Text.min(1).optional().describe("the run, by its name in the log or in LangBot"),
  principals: z.array(PrincipalName).min(1).max(100).optional(),
  newest: z
    .int()
    .min(1)
    .max(MAX_CANDIDATES)
    .default(MAX_CANDIDATES)
    .describe("how many runs are looked at for the expected call, the newest first"),
  created_after: Text.min(1).optional().describe("ISO 8601, UTC unless it says an offset"),
  expected: z
    .strictObject({
      tool_name: Text.min(1),
      parameters: z
        .union([z.record(z.string(), z.unknown()), Text])
        .optional()
        .describe("a JSON object, or its text"),
      result_text: Text.optional(),
    })
    .optional(),
  mode: AuditMode.default("strict"),
  unrecorded: Unrecorded.optional(),
});

const Ref = z.object({ seq: Seq, hash: Hash });
const Kind = z.looseObject({ kind: z.string() });

export const AuditAnswer = z.object({
  status: z.enum(["pass", "fail", "env_issue"]),
  reason: z.string(),
  run: z
    .object({
      run_id: z.string(),
      runner_id: z.string().nullable(),
      status: z.string().nullable(),
      created_at: z.string(),
      finished_at: z.string(),
    })
    .optional(),
  metrics: z.record(z.string(), z.union([z.int(), z.string()])).optional(),
  expected_tool_call: z.record(z.string(), z.unknown()).nullish(),
  failures: z.array(Kind),
  warnings: z.array(Kind),
  findings: z.array(
    z.object({
      kind: z.string(),
      severity: z.enum(["failure", "warning"]),
      message: z.string(),
      entries: z.array(Ref).describe("the entries that show it"),
      missing: z.object({ from: z.int(), to: z.int() }).optional(),
    }),
  ),
  finding_counts: z.record(z.string(), z.int()),
  not_checked: z.array(z.object({ entry: Ref.optional(), what: z.string(), why: z.string() })),
  not_checked_count: z.int(),
  notes: z.array(z.string()),
  context: z.enum(["log", "run"]),
  entries: z.object({ run: z.string(), first: Ref, last: Ref, count: z.int() }).nullable(),
  head: Head.nullable().describe("the signed head that covers the entries read"),
  covered: z.boolean(),
  principal: z.string().nullable().describe("whose log the run is in"),
  looked_at: z.int().optional().describe("how many runs were looked at to choose it"),
});
