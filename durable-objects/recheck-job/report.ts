/**
 * The report of a job: canonical JSON, made of nothing but what is stored, so that it is the same however often it is
 * made (docs/recheck.md, "Jobs").
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { canonicalJson } from "../../shared/json/canonical.ts";
import { hashText } from "../../shared/recheck/hash.ts";
import { decodeSpec } from "../../shared/recheck/spec.ts";
import { RecheckSummary } from "../../shared/recheck/summary.ts";
import { summaryJson } from "../../shared/recheck/summary-json.ts";
import { formatTime } from "../../shared/time.ts";
import type { JobStorage } from "./storage.ts";
import type { JobLog, JobPolicy, JobRequest, JobSelection } from "./types.ts";

/** The logs that the job reads, with the number of runs that the selection has of each. */
export function* coveredLogs(storage: JobStorage, newest: number | null): Generator<JobLog> {
  let n = 0;
  for (const log of storage.logs()) {
    n++;
    const runs = newest === null ? log.runs : storage.pickedCount(n);
    if (runs > 0) yield { ...log, runs };
  }
}

/** Runs of the selection, over all logs. */
export function totalRuns(storage: JobStorage, newest: number | null): number {
  if (newest !== null) return storage.pickedCount();
  let total = 0;
  for (const { runs } of storage.logs()) total += runs;
  return total;
}

/** Named principals of which the selection has no run. */
export function principalsWithoutRuns(storage: JobStorage, { principals, newest }: JobSelection): string[] {
  if (principals === null) return [];
  const having = new Set([...coveredLogs(storage, newest)].map(({ principal }) => principal.name));
  return principals.map(({ name }) => name).filter((name) => !having.has(name));
}

/** The selection as it was asked for. */
export function selectionJson(selection: JobSelection): Record<string, unknown> {
  const { principals, since, until, tool, policyId, newest, run } = selection;
  const time = (nanoseconds: string | null) =>
    nanoseconds === null ? null : formatTime(BigInt(nanoseconds));
  const members: [string, unknown][] = [
    ["principals", principals?.map(({ name }) => name) ?? null],
    ["since", time(since)],
    ["until", time(until)],
    ["tool", tool],
    ["policy_id", policyId],
    ["newest", newest],
    ["run", run],
  ];
  return Object.fromEntries(members.filter(([, value]) => value !== null));
}

/** The policy that was used, without its source. */
export function policyJson(policy: Omit<JobPolicy, "reference" | "currentTools">): Record<string, unknown> {
  const { engine, policyId, hash, name, version } = policy;
  return {
    engine,
    policy_id: policyId,
    ...(hash === null ? {} : { hash }),
    ...(name === null ? {} : { name, version }),
  };
}

/** A log's head, as the report names it. */
export function headJson({ principal, logId, head }: Omit<JobLog, "runs">): Record<string, unknown> {
  return {
    principal: principal.name,
    principal_id: principal.id,
    generation: principal.generation,
    log_id: logId,
    size: head.size,
    hash: head.hash,
    root: head.root,
    epoch: head.epoch,
    key: head.key,
  };
}

/** The report's text. The job's end is decided. */
export function reportText(storage: JobStorage, request: JobRequest): string {
  const state = storage.state();
  const { selection, policy, budget } = request;
  const summary = new RecheckSummary(storage.summary());
  const current = (policy.currentTools ?? []).map((text) => {
    const decoded = decodeSpec(text);
    return { name: decoded.ok ? decoded.value.name : "", hash: hashText(nativeCrypto, canonicalJson(text)) };
  });
  const heads = [...coveredLogs(storage, selection.newest)].map((log) => ({
    ...headJson(log),
    checkpoint: log.head.checkpoint,
    runs: log.runs,
  }));
  const report = {
    report: "runseal.recheck.v1",
    id: request.id,
    status: state.end,
    ...(state.reason === "" ? {} : { reason: state.reason }),
    created_at: request.createdAt,
    finished_at: state.finishedAt,
    by: request.by,
    selection: selectionJson(selection),
    budget,
    policy: policyJson(policy),
    specs: { source: policy.specSource, ...(policy.specSource === "current" ? { tools: current } : {}) },
    heads,
    runs: { done: state.runsDone, total: totalRuns(storage, selection.newest) },
    lines: { count: state.lines, hash: state.linesHash },
    without_runs: principalsWithoutRuns(storage, selection),
    summary: summaryJson(summary),
  };
  // A policy that is stored nowhere is part of the report, with its numbers as they were sent.
  const source = policy.name === null ? `,"policy_source":${policy.reference}` : "";
  return canonicalJson(`${JSON.stringify(report).slice(0, -1)}${source}}`);
}
