/**
 * The shapes of re-check jobs (docs/recheck.md, "Jobs"): what is asked for, and what is answered.
 *
 * @module
 */
import { z } from "zod";
import { Hash, HexId, OpaqueId, PrincipalName, Seq, Time } from "./schemas.ts";

/** Names in one selection. */
export const MAX_NAMED_PRINCIPALS = 200;
/** Runs of a selection of the newest. */
export const MAX_NEWEST = 1_000;

export const SelectionIn = z
  .strictObject({
    principals: z
      .array(PrincipalName)
      .min(1)
      .max(MAX_NAMED_PRINCIPALS)
      .optional()
      .describe("the logs; absent: every log that the key may use"),
    since: z
      .string()
      .max(64)
      .optional()
      .describe("runs whose first entry was recorded from then on, RFC 3339"),
    until: z.string().max(64).optional().describe("runs whose first entry was recorded before then"),
    tool: z.string().min(1).max(1024).optional().describe("evaluations of this tool"),
    policy_id: z.string().min(1).max(256).optional().describe("evaluations under this recorded identity"),
    newest: z
      .int()
      .min(1)
      .max(MAX_NEWEST)
      .optional()
      .describe("the newest runs only, by their first entries"),
  })
  .describe("an empty one is everything that the key may use");

export const DEFAULT_BUDGET = { runs: 10_000, evaluations: 1_000_000, seconds: 3_600 } as const;
export const BudgetIn = z
  .strictObject({
    runs: z.int().min(1).max(1_000_000).default(DEFAULT_BUDGET.runs),
    evaluations: z.int().min(1).max(100_000_000).default(DEFAULT_BUDGET.evaluations),
    seconds: z.int().min(1).max(86_400).default(DEFAULT_BUDGET.seconds).describe("of work"),
  })
  .describe("a job that needs more ends as budget-exhausted");

const Count = z.int().min(0);
const Transition = z.object({ recorded: z.string(), rechecked: z.string(), same: Count, different: Count });
const Group = z.object({
  same: Count,
  different: Count,
  not_recheckable: Count,
  transitions: z.array(Transition),
});
const Groups = z.object({
  groups: z.array(Group.extend({ name: z.string() })).describe("worst first"),
  others: Group.nullable().describe("those that are not listed, summed up; null where all are"),
});
const Counts = z.object({ counts: z.record(z.string(), Count), others: Count });

export const SummaryOut = z.object({
  policy_id: z.string(),
  identity: z.enum(["unknown", "changed", "unchanged"]),
  spec_source: z.enum(["recorded", "current"]),
  runs: z.object({ rechecked: Count, without_evaluations: Count, failed: Count }),
  totals: z.object({
    evaluated: Count,
    same: Count,
    different: Count,
    not_a_policy_evaluation: Count,
    not_recheckable: z.object({ total: Count, by_reason: z.record(z.string(), Count) }),
  }),
  transitions: z.array(Transition).describe("worst first; deny to allow always"),
  new_allows: z.object({
    total: Count,
    groups: z.array(
      z.object({
        recorded: z.string(),
        principal: z.string(),
        tool: z.string(),
        count: Count,
        run: z.string(),
        seq: Seq,
      }),
    ),
    cut: Count,
  }),
  worst: z.object({
    differences: z.array(
      z.object({
        principal: z.string(),
        run: z.string(),
        step_index: z.int(),
        seq: Seq,
        tool: z.string(),
        recorded: z.string(),
        rechecked: z.string(),
        detail: z.string().optional(),
      }),
    ),
    cut: Count,
  }),
  by_tool: Groups,
  by_principal: Groups,
  failed_runs: z.object({
    runs: z.array(
      z.object({ principal: z.string(), run: z.string().describe('"": the whole log'), code: z.string() }),
    ),
    cut: Count,
  }),
  recorded_policies: Counts.describe("evaluations by the identity that they recorded"),
  specs: z
    .object({ hashes: z.array(z.string()), cut: z.boolean() })
    .describe("recorded specs that were used"),
  notes: Counts.describe("runs by note"),
  same: z.boolean(),
  differences: Count,
  rechecked: Count,
  not_recheckable: Count,
  complete: z.boolean(),
});

const END = ["complete", "budget-exhausted", "cancelled", "failed"] as const;
export const PolicyUsed = z.object({
  engine: z.string(),
  policy_id: z.string(),
  hash: Hash.optional(),
  name: OpaqueId.optional(),
  version: z.int().optional(),
});
const SelectionOut = z.looseObject({});
const HeadOut = z.object({
  principal: PrincipalName,
  principal_id: HexId,
  generation: z.int(),
  log_id: Hash,
  size: z.int(),
  hash: Hash,
  root: Hash,
  epoch: z.int(),
  key: Hash,
});

export const RecheckJobOut = z.object({
  id: HexId,
  status: z.enum(["resolving", "running", "finishing", ...END]),
  reason: z.string().optional().describe("why it ended before its selection did"),
  created_at: Time,
  finished_at: Time.nullable(),
  selection: SelectionOut,
  budget: z.object({ runs: z.int(), evaluations: z.int(), seconds: z.int() }),
  policy: PolicyUsed,
  specs: z.object({ source: z.enum(["recorded", "current"]) }),
  progress: z.object({
    logs: Count,
    runs: z.object({ done: Count, total: Count.nullable() }),
    evaluations: Count,
  }),
  heads: z.array(HeadOut).describe("the first 100 heads that cover what is read; the report has them all"),
  without_runs: z.array(z.string()).describe("named principals that have no run in the selection"),
  summary: SummaryOut.describe("so far"),
  report_hash: Hash.nullable().describe("SHA-256 of the report, once it is final"),
  entry: z
    .object({ principal: z.string(), id: OpaqueId })
    .nullable()
    .describe("the entry that records the report"),
});

export const RecheckListed = z.object({
  id: HexId,
  status: z.enum(["running", ...END]),
  created_at: Time,
  finished_at: Time.nullable(),
  policy: PolicyUsed,
  report_hash: Hash.nullable(),
});

export const JobReportOut = z.looseObject({
  report: z.literal("runseal.recheck.v1"),
  id: HexId,
  status: z.enum(END),
  policy: PolicyUsed,
  heads: z.array(HeadOut.extend({ checkpoint: z.string(), runs: z.int() })),
  summary: SummaryOut,
});
