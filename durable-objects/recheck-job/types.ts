/**
 * What crosses RPC between the Worker and a re-check job, and what a job keeps (docs/recheck.md, "Jobs"). Errors cross as
 * values.
 *
 * @module
 */
import type { SpecSource } from "../../shared/recheck/report.ts";
import type { PrincipalRecord, TenantRecord } from "../tenant-directory/tenant-directory.ts";

/** `resolving`: the selection's bounds are being fixed. `finishing`: the report is being made evidence. */
export type JobStatus = "resolving" | "running" | "finishing" | JobEnd;
/** How a job ends. `failed`: it could not be gone on with. */
export type JobEnd = "complete" | "budget-exhausted" | "cancelled" | "failed";

export function isEnd(status: JobStatus): status is JobEnd {
  return status !== "resolving" && status !== "running" && status !== "finishing";
}

/** What is re-checked. Times are nanoseconds since the epoch, as decimal text. */
export interface JobSelection {
  /** The principals that were named, in the order of their names; null for every one that the key may use. */
  readonly principals: readonly PrincipalRecord[] | null;
  /** Runs whose first entry was recorded from then on. */
  readonly since: string | null;
  /** Runs whose first entry was recorded before then. */
  readonly until: string | null;
  /** Evaluations of this tool. */
  readonly tool: string | null;
  /** Evaluations under this recorded policy identity. */
  readonly policyId: string | null;
  /** The newest runs only, by the time of their first entries. */
  readonly newest: number | null;
  /** The one run of a stored report on a run; null for a job. */
  readonly run: string | null;
}

/** What a job may use at most: it ends as `budget-exhausted` where that is not enough. */
export interface JobBudget {
  readonly runs: number;
  readonly evaluations: number;
  /** Seconds of work; pauses and outages are not counted. */
  readonly seconds: number;
}

/** The policy and specs that are used, settled when the job is made. */
export interface JobPolicy {
  /** JSON text that opens the same policy again. */
  readonly reference: string;
  readonly policyId: string;
  readonly engine: string;
  /** Hex SHA-256 of the policy's canonical JSON. */
  readonly hash: string | null;
  readonly name: string | null;
  readonly version: number | null;
  readonly specSource: SpecSource;
  /** JSON texts; null with recorded specs. */
  readonly currentTools: readonly string[] | null;
}

export interface JobRequest {
  /** 16 bytes of hex. */
  readonly id: string;
  readonly tenant: TenantRecord;
  /** Id of the API key that asks. */
  readonly by: string;
  /** Names that the key may use; null for every one. */
  readonly keyPrincipals: readonly string[] | null;
  /** What the same request is known by. */
  readonly fingerprint: string;
  readonly selection: JobSelection;
  readonly budget: JobBudget;
  readonly policy: JobPolicy;
  /** RFC 3339. */
  readonly createdAt: string;
}

/** A log as the job reads it: up to this head and no further. */
export interface JobLog {
  readonly principal: PrincipalRecord;
  /** Hex. */
  readonly logId: string;
  readonly head: {
    readonly size: number;
    readonly hash: string;
    readonly root: string;
    readonly epoch: number;
    readonly key: string;
    readonly checkpoint: string;
  };
  /** Runs of it that the selection has. */
  readonly runs: number;
}

export interface JobProgress {
  readonly logs: number;
  readonly runsDone: number;
  /** Known once the bounds are fixed. */
  readonly runsTotal: number | null;
  readonly evaluations: number;
}

/** A job as it stands. */
export interface JobView {
  readonly id: string;
  readonly status: JobStatus;
  /** Why it ended before its selection did; "" where it did not. */
  readonly reason: string;
  readonly createdAt: string;
  readonly finishedAt: string | null;
  readonly policy: Omit<JobPolicy, "reference" | "currentTools">;
  readonly selection: JobSelection;
  readonly budget: JobBudget;
  readonly progress: JobProgress;
  /** JSON of a `SummaryState`. */
  readonly summary: string;
  /** Named principals that have no run in the selection; known once the bounds are fixed. */
  readonly withoutRuns: readonly string[];
  /** The first heads; the report has them all. */
  readonly heads: readonly Omit<JobLog, "runs">[];
  /** Names of the principals that it may read; null for every one. Whoever may use them all may see it. */
  readonly keyPrincipals: readonly string[] | null;
  /** Hex SHA-256 of the report, once it is final. */
  readonly reportHash: string | null;
}

export type StartOutcome =
  | { readonly ok: true; readonly view: JobView; readonly repeated: boolean }
  /** The id belongs to another request. */
  | { readonly ok: false; readonly code: "idempotency-mismatch" };

/** Lines of runs, in the order in which they were done. */
export interface LinesPage {
  readonly lines: readonly string[];
  /** Number of the last one; where the next page goes on. Null at the end of what is done. */
  readonly next: number | null;
}

/** A report on one run that was made elsewhere, and becomes evidence like a job's. */
export interface GivenReport {
  /** Hex SHA-256 of its text, which is in R2 already. */
  readonly reportHash: string;
  readonly log: JobLog;
  /** JSON of a `SummaryState`. */
  readonly summary: string;
  readonly line: { readonly text: string; readonly differs: boolean };
}

/** The object of a job. A job is reached through its tenant: an id of another tenant names another object. */
export function jobObjectName(tenant: string, id: string): string {
  return `${tenant}/${id}`;
}
