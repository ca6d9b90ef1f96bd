/**
 * Checks of `host.run` entries (docs/host-calls.md): against themselves, with the log alone; and against the calls,
 * where whoever made them wrote each down too, in this log or another.
 *
 * @module
 */
import type { CryptoPort } from "../crypto/port.ts";
import type { EntryView, Missing } from "../entry/view.ts";
import type { JsonValue } from "../json/value.ts";
import { JsonNumber, jsonText, parseJsonValue } from "../json/value.ts";
import { isTime, parseTime } from "../time.ts";
import type { CallOutcome, HostCall } from "./run-fold.ts";
import { CALL_OUTCOMES, callsText, HostCallFold } from "./run-fold.ts";

/** What is wrong with a `host.run` entry, as a member of its `calls`. */
export interface RunMismatch {
  readonly member: "count" | "first_at" | "last_at" | "fold" | "tally";
  /** A plain sentence without values. */
  readonly detail: string;
}

export type RunCheck =
  | { readonly verdict: "matches" }
  | { readonly verdict: "differs"; readonly mismatches: readonly RunMismatch[] }
  /** A field that is needed has no value here, or an entry is no call. */
  | {
      readonly verdict: "not-checkable";
      readonly why: Missing | "no-calls" | "not-a-call";
      readonly seq: number;
    };

const OUTCOME_OF: Readonly<Record<string, CallOutcome>> = {
  success: "ok",
  failure: "failed",
  denied: "denied",
};

type Members = ReadonlyMap<string, JsonValue>;

/** The entry's `calls`; why it can't be read otherwise. */
function callsOf(entry: EntryView): Members | Missing | "no-calls" {
  const field = entry.action.get("calls");
  if (field === undefined) return "no-calls";
  if ("missing" in field) return field.missing;
  const value = parseJsonValue(field.text);
  return value instanceof Map ? value : "no-calls";
}

/**
 * A call that was written as an entry of its own: its class is the kind, its fields those of the action, its time the
 * sender's (the log's where there is none). A string `error` or `detail` of the outcome is its detail.
 */
export function callOfEntry(entry: EntryView): HostCall | Missing | "not-a-call" {
  const outcome = OUTCOME_OF[entry.outcome?.status ?? ""];
  if (outcome === undefined) return "not-a-call";
  const fields = new Map<string, string>();
  for (const [name, field] of entry.action) {
    if ("missing" in field) return field.missing;
    fields.set(name, field.text);
  }
  let detail: string | null = null;
  for (const name of ["error", "detail"]) {
    const field = entry.outcome?.fields.get(name);
    if (field === undefined || detail !== null) continue;
    if ("missing" in field) return field.missing;
    const value = parseJsonValue(field.text);
    if (typeof value === "string") detail = value;
  }
  return { class: entry.kind, fields, outcome, detail, at: entry.occurred_at ?? entry.recorded_at };
}

/**
 * Whether the entry contradicts itself: no calls at all, a part that is not there, a tally that does not add up or has a
 * line of no call, times the wrong way round.
 */
export function checkRunAlone(entry: EntryView): RunCheck {
  const calls = callsOf(entry);
  if (typeof calls === "string") return { verdict: "not-checkable", why: calls, seq: entry.seq };
  const mismatches: RunMismatch[] = [];
  const count = wholeOf(calls.get("count"));
  if (count === undefined || count === 0n)
    mismatches.push({ member: "count", detail: "a run is of at least one call" });
  if (calls.get("fold") === undefined || calls.get("fold") === null)
    mismatches.push({ member: "fold", detail: "the hash over the calls is not there" });
  const [first, last] = [timeOf(calls.get("first_at")), timeOf(calls.get("last_at"))];
  if (first === undefined)
    mismatches.push({ member: "first_at", detail: "the first call's time is not there" });
  if (last === undefined) mismatches.push({ member: "last_at", detail: "the last call's time is not there" });
  if (first !== undefined && last !== undefined && last < first)
    mismatches.push({ member: "last_at", detail: "the last call was before the first one" });
  for (const detail of tallyMismatches(calls.get("tally"), count))
    mismatches.push({ member: "tally", detail });
  return mismatches.length === 0 ? { verdict: "matches" } : { verdict: "differs", mismatches };
}

function tallyMismatches(tally: JsonValue | undefined, count: bigint | undefined): string[] {
  if (!Array.isArray(tally)) return ["the tally is not there"];
  const details: string[] = [];
  const names = new Set<string>();
  let sum = 0n;
  let isOfCalls = true;
  for (const line of tally) {
    const calls = line instanceof Map ? (wholeOf(line.get("count")) ?? 0n) : 0n;
    if (line instanceof Map) names.add(nameOf(line));
    if (!isOfClass(line) || calls === 0n) isOfCalls = false;
    sum += calls;
  }
  if (sum !== count) details.push("the tally does not add up to the count");
  if (!isOfCalls) details.push("the tally has a line of no call, or of no class and outcome");
  else if (names.size !== tally.length) details.push("the tally has two lines for one class and outcome");
  return details;
}

function isOfClass(line: JsonValue): boolean {
  if (!(line instanceof Map)) return false;
  const outcome = line.get("outcome");
  return typeof line.get("class") === "string" && CALL_OUTCOMES.some((one) => one === outcome);
}

/**
 * Computes the fold again from the calls, in their order, and compares.
 *
 * @param calls the entries of the calls that the run is about, and no others
 */
export function checkRunAgainst(
  crypto: Pick<CryptoPort, "sha256">,
  entry: EntryView,
  calls: Iterable<EntryView>,
): RunCheck {
  const claimed = callsOf(entry);
  if (typeof claimed === "string") return { verdict: "not-checkable", why: claimed, seq: entry.seq };
  const fold = new HostCallFold(crypto);
  for (const one of calls) {
    const call = callOfEntry(one);
    if (typeof call === "string") return { verdict: "not-checkable", why: call, seq: one.seq };
    fold.add(call);
  }
  if (fold.count === 0) return { verdict: "not-checkable", why: "no-calls", seq: entry.seq };
  const computed = parseJsonValue(callsText(fold.summary())) as Members;
  const mismatches: RunMismatch[] = [];
  for (const member of ["count", "first_at", "last_at", "fold", "tally"] as const) {
    if (!isSame(member, claimed.get(member), computed.get(member)))
      mismatches.push({ member, detail: "is another one than the calls give" });
  }
  return mismatches.length === 0 ? { verdict: "matches" } : { verdict: "differs", mismatches };
}

/** Times are the same where they name the same nanosecond, however they are written. */
function isSame(
  member: RunMismatch["member"],
  claimed: JsonValue | undefined,
  computed: JsonValue | undefined,
): boolean {
  if (claimed === undefined || computed === undefined) return false;
  if (member === "first_at" || member === "last_at") return timeOf(claimed) === timeOf(computed);
  return jsonText(claimed) === jsonText(computed);
}

function wholeOf(value: JsonValue | undefined): bigint | undefined {
  return value instanceof JsonNumber && /^(?:0|[1-9][0-9]*)$/.test(value.literal)
    ? BigInt(value.literal)
    : undefined;
}

function timeOf(value: JsonValue | undefined): bigint | undefined {
  return typeof value === "string" && isTime(value) ? parseTime(value) : undefined;
}

function nameOf(line: Members): string {
  return jsonText([line.get("class") ?? null, line.get("outcome") ?? null]);
}
