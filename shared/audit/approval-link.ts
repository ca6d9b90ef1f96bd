/**
 * Which approval an act stands on, and whether the act is the one that was approved (docs/audit.md "Approvals").
 *
 * @module
 */
import type { EntryView } from "../entry/view.ts";
import { jsonText, parseJsonValue } from "../json/value.ts";
import { approvalHash, hashText, type Sha256 } from "../recheck/hash.ts";
import { stringAt, textOf } from "./fields.ts";
import type { EntryRef } from "./finding.ts";

/** What an approval says that binds it to an act. Texts are canonical JSON. */
export interface ApprovedSubject {
  /** The approval hash; undefined where it is not there. */
  readonly hash: string | undefined;
  readonly kind: string;
  readonly capability: string;
  readonly presentation: string;
}

export type ApprovalStatus = "pending" | "granted" | "refused";

/** An approval that was requested, and what became of it. */
export interface Approval {
  readonly id: string;
  readonly request: EntryRef;
  readonly call: string | null;
  /** The tools that its capability names; empty where it names none. */
  readonly tools: readonly string[];
  /** Null where it is not held any more. */
  subject: ApprovedSubject | null;
  status: ApprovalStatus;
  decision: EntryRef | null;
  /** How far the decision says that it reaches: `once` or further; null where it does not say. */
  scope: string | null;
  /** The first act that did not wait for the decision. */
  earlyAct: EntryRef | null;
  /** The first act that it allowed. */
  usedBy: EntryRef | null;
}

/** What a policy was asked about a call, as far as an act has to be the same one. */
export interface EvaluatedCall {
  readonly tool: string;
  /** Hash of the canonical arguments; undefined where they are not there. */
  readonly args: string | undefined;
  readonly spec: string | undefined;
}

export function subjectOf(entry: EntryView): ApprovedSubject {
  return {
    hash: stringAt(entry.action, "hash"),
    kind: stringAt(entry.action, "kind") ?? "",
    capability: textOf(entry.action, "capability") ?? "{}",
    presentation: textOf(entry.action, "presentation") ?? "{}",
  };
}

/** What a capability names: agentrt's is `{tool, args}`; its proxy's has the name that was offered as `name`. */
export function capabilityOf(text: string): {
  readonly tools: readonly string[];
  readonly args: string | undefined;
} {
  const capability = text.startsWith("{") ? parseJsonValue(text) : null;
  if (!(capability instanceof Map)) return { tools: [], args: undefined };
  const tools = ["name", "tool"].flatMap((key) => {
    const name = capability.get(key);
    return typeof name === "string" ? [name] : [];
  });
  const args = capability.get("args");
  return { tools, args: args === undefined ? undefined : jsonText(args) };
}

/** The canonical arguments of a call; undefined where they are not there. */
export function argsOf(entry: EntryView): string | undefined {
  const args = entry.action.get("args");
  return args !== undefined && "text" in args ? args.text : undefined;
}

export interface SubjectCheck {
  readonly crypto: Sha256;
  /** Canonical text of the stored spec of that hash. */
  readonly specs: (hash: string) => string | undefined;
}

/** `unknown`: nothing that is there binds the two. */
export type Comparison = "same" | "other" | "unknown";

/**
 * Whether the call is what the approval allows. The approval hash decides, where the tool's spec is stored; else what the capability and the policy's evaluation say.
 */
export function compareWithApproval(
  call: EntryView,
  approval: Approval,
  evaluated: EvaluatedCall | undefined,
  { crypto, specs }: SubjectCheck,
): Comparison {
  const args = argsOf(call);
  const tool = stringAt(call.action, "tool");
  if (args === undefined || tool === undefined) return "unknown";
  const { subject } = approval;
  const spec = stringAt(call.action, "spec_hash") ?? evaluated?.spec;
  const specText = spec === undefined ? undefined : specs(spec);
  if (subject?.hash !== undefined && specText !== undefined) {
    const { kind, capability, presentation } = subject;
    const request = { runId: call.run ?? "", stepId: call.step ?? "", spec: specText, args };
    return same(approvalHash(crypto, { kind, capability, presentation, ...request }) === subject.hash);
  }
  const verdicts: Comparison[] = [];
  if (subject !== null) {
    const capability = capabilityOf(subject.capability);
    if (capability.tools.length > 0 && capability.args !== undefined)
      verdicts.push(same(capability.tools.includes(tool) && capability.args === args));
  }
  if (evaluated?.args !== undefined) {
    const sameSpec = spec === undefined || evaluated.spec === undefined || spec === evaluated.spec;
    verdicts.push(same(sameSpec && tool === evaluated.tool && hashText(crypto, args) === evaluated.args));
  }
  if (verdicts.includes("other")) return "other";
  return verdicts.includes("same") ? "same" : "unknown";
}

function same(isSame: boolean): Comparison {
  return isSame ? "same" : "other";
}
