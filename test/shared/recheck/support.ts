/**
 * Synthetic runs for the re-check tests: a log writer for single entries, and an agentrt-like loop that writes what such
 * a runtime would write, deciding with a given policy.
 *
 * @module
 */
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import type { EntryView, FieldView, Missing } from "../../../shared/entry/view.ts";
import { canonicalJson } from "../../../shared/json/canonical.ts";
import { type RecheckOptions, recheckRunSync } from "../../../shared/recheck/compare.ts";
import { type FoldOptions, RunFold } from "../../../shared/recheck/fold.ts";
import { approvalHash, contentHash } from "../../../shared/recheck/hash.ts";
import type { FoldedRun } from "../../../shared/recheck/model.ts";
import { type Policy, type PolicyAnswer, PolicyRequest } from "../../../shared/recheck/policy.ts";
import type { RecheckReport } from "../../../shared/recheck/report.ts";
import { rulesPolicy } from "../../../shared/recheck/rules.ts";
import { decodeSpec, type ToolSpec } from "../../../shared/recheck/spec.ts";
import type { PolicyView } from "../../../shared/recheck/view.ts";

/** A field's value as a JSON text, where it is not to go through `JSON.stringify`. */
export class Raw {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}
export const raw = (text: string): Raw => new Raw(text);

/** A field that the leaf commits to, and whose value is not there. */
export class Gone {
  readonly why: Missing;
  constructor(why: Missing) {
    this.why = why;
  }
}
export const gone = (why: Missing): Gone => new Gone(why);

export type Fields = Readonly<Record<string, unknown>>;

function field(value: unknown): FieldView {
  if (value instanceof Gone) return { missing: value.why };
  return { text: canonicalJson(value instanceof Raw ? value.text : JSON.stringify(value)) };
}

function fieldViews(fields: Fields): Map<string, FieldView> {
  const present = Object.entries(fields).filter(([, value]) => value !== undefined);
  return new Map(present.map(([name, value]) => [name, field(value)]));
}

export interface EntryParts {
  readonly step?: string | null;
  readonly action?: Fields;
  readonly outcome?: { readonly status: string } & Fields;
  readonly at?: bigint | null;
}

/** The start of time in these runs: 2026-10-01T09:00:00Z, and a second an entry. */
export const EPOCH = 1_790_845_200_000_000_000n;
const SECOND = 1_000_000_000n;

/** Writes the entries of one run. */
export class Log {
  readonly run: string;
  readonly entries: EntryView[] = [];
  #seq = 0;

  constructor(run = "r1") {
    this.run = run;
  }

  /** Adds an entry, and gives its seq. */
  add(kind: string, parts: EntryParts = {}): number {
    const seq = ++this.#seq;
    const { outcome } = parts;
    const { status, ...outcomeFields } = outcome ?? { status: "" };
    this.entries.push({
      seq,
      hash: seq.toString(16).padStart(64, "0"),
      id: `e${seq}`,
      kind,
      recorded_at: EPOCH + BigInt(seq) * SECOND,
      occurred_at: parts.at === undefined ? EPOCH + BigInt(seq) * SECOND : parts.at,
      session: null,
      run: this.run,
      step: parts.step ?? null,
      call: null,
      actor: null,
      action: fieldViews(parts.action ?? {}),
      authorization: null,
      outcome: outcome === undefined ? null : { status, fields: fieldViews(outcomeFields) },
    });
    return seq;
  }

  /** Leaves a seq to other entries of the principal. */
  skip(): void {
    this.#seq++;
  }

  fold(options?: FoldOptions): FoldedRun {
    const fold = new RunFold(this.run, options);
    for (const entry of this.entries) fold.add(entry);
    return fold.finish();
  }
}

/** The tools of agentrt's own fixture: one of each side-effect class, all with the same schema. */
export const NUMBER_SCHEMA =
  '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}';

export function specText(
  name: string,
  sideEffect: string,
  schema = NUMBER_SCHEMA,
  description = name,
): string {
  return canonicalJson(
    `{"name":${JSON.stringify(name)},"description":${JSON.stringify(description)},"input_schema":${schema},` +
      `"side_effect":${JSON.stringify(sideEffect)},"timeout":2000000000}`,
  );
}

export const TOOLS: ReadonlyMap<string, string> = new Map([
  ["read", specText("read", "read_only")],
  ["wipe", specText("wipe", "destructive")],
  ["publish", specText("publish", "remote_mutation")],
  ["write", specText("write", "local_mutation")],
]);

/** A place that specs are stored in. */
export class SpecStore {
  readonly #texts = new Map<string, string>();
  readonly lookup = (hash: string): string | undefined => this.#texts.get(hash);

  /** Stores the spec, under its hash unless told otherwise, and gives the hash. */
  put(text: string, hash = contentHash(pureCrypto, text)): string {
    this.#texts.set(hash, text);
    return hash;
  }
}

export function toolSpec(text: string): ToolSpec {
  const decoded = decodeSpec(text);
  if (!decoded.ok) throw new Error(decoded.why);
  return decoded.value;
}

const DEFAULT_OUTCOMES = {
  read_only: "allow",
  local_mutation: "allow",
  remote_mutation: "require_approval",
  destructive: "deny",
};
const STRICT_OUTCOMES = {
  read_only: "allow",
  local_mutation: "deny",
  remote_mutation: "deny",
  destructive: "deny",
};

export const defaultPolicy = (): Policy =>
  rulesPolicy(JSON.stringify({ policy_id: "default/v1", side_effects: DEFAULT_OUTCOMES }));
export const strictPolicy = (): Policy =>
  rulesPolicy(JSON.stringify({ policy_id: "strict/v1", side_effects: STRICT_OUTCOMES }));

/** A policy that is a function; `id` "" unless told. */
export function policyOf(
  decide: (request: PolicyRequest, view: PolicyView) => PolicyAnswer | Promise<PolicyAnswer>,
  id = "",
): Policy {
  return { id, decide };
}

export function answerOf(
  outcome: string,
  more: Partial<Record<"reason" | "kind" | "capability" | "presentation", string>> = {},
): PolicyAnswer {
  const { reason = "", kind = "", capability = null, presentation = null } = more;
  return { ok: true, decision: { outcome, reason, kind, capability, presentation } };
}

export interface Call {
  readonly tool: string;
  /** JSON text. */
  readonly args: string;
  /** What becomes of the approval where the policy asks for one; granted unless told. */
  readonly approval?: "granted" | "denied" | "expired" | "waiting";
}

export interface LoopOptions {
  readonly run?: string;
  readonly tools?: ReadonlyMap<string, string>;
  /** Whether step entries are written; without them the run is one as an importer makes it. */
  readonly steps?: boolean;
  readonly idOf?: () => string;
}

/** A run that went through its calls under a policy, as agentrt would have recorded it. */
export class LoopRun {
  readonly log: Log;
  readonly specs = new SpecStore();
  /** Every request, and the view's counts, as the policy was handed them. */
  readonly asked: { readonly request: PolicyRequest; readonly seq: number }[] = [];
  readonly #policy: Policy;
  readonly #tools: ReadonlyMap<string, string>;
  readonly #steps: boolean;
  readonly #idOf: () => string;
  #index = 0;
  #approvals = 0;
  #over = false;

  constructor(policy: Policy, options: LoopOptions = {}) {
    let ids = 0;
    this.#idOf = options.idOf ?? (() => `id-${String(++ids).padStart(2, "0")}`);
    this.log = new Log(options.run ?? this.#idOf());
    this.#policy = policy;
    this.#tools = options.tools ?? TOOLS;
    this.#steps = options.steps ?? true;
    const hashes = Object.fromEntries([...this.#tools].map(([name, text]) => [name, this.specs.put(text)]));
    const limits = { max_steps: 50, max_consecutive_tool_failures: 3, loop_threshold: 3 };
    this.log.add("run.created", { action: { goal: "publish the notes", limits, tools: hashes } });
    this.log.add("run.started");
  }

  call({ tool, args, approval = "granted" }: Call): void {
    if (this.#over) return;
    const step = this.#idOf();
    const spec = toolSpec(this.#tools.get(tool) ?? specText(tool, ""));
    const index = this.#index++;
    const request = new PolicyRequest(this.log.run, step, tool, spec, canonicalJson(args));
    if (this.#steps) {
      this.log.add("step.started", { step, action: { index } });
      this.log.add("step.decided", { step, action: { kind: "tool_call", tool, args: raw(args) } });
    }
    const outcome = this.#evaluate(request, index, "RUNNING");
    if (outcome === "require_approval") {
      const id = this.#idOf();
      this.#approvals++;
      const { decision } = this.#last(request);
      const hash = approvalHash(pureCrypto, {
        kind: decision.kind,
        capability: decision.capability,
        presentation: decision.presentation,
        runId: this.log.run,
        stepId: step,
        spec: spec.text,
        args: request.canonicalArgs,
      });
      this.log.add("approval.requested", {
        step,
        action: {
          approval_id: id,
          kind: decision.kind,
          capability: raw(decision.capability ?? "{}"),
          presentation: raw(decision.presentation ?? "{}"),
          hash,
        },
      });
      if (approval === "waiting") {
        this.#over = true;
        return;
      }
      this.log.add(`approval.${approval}`, { step, action: { approval_id: id, by: "op", note: "fine" } });
      if (approval !== "granted") {
        this.log.add("run.cancelled");
        this.#over = true;
        return;
      }
      this.log.add("run.resumed");
      this.#evaluate(request, index, "WAITING_FOR_APPROVAL");
    } else if (outcome !== "allow") {
      if (this.#steps)
        this.log.add("step.failed", { step, action: { kind: "policy_denied", detail: "denied" } });
      return;
    }
    this.log.add("tool.call.started", { step, action: { tool, args: raw(args) } });
    this.log.add("tool.call.completed", {
      step,
      action: { tool },
      outcome: { status: "success", result: raw(args) },
    });
  }

  complete(): this {
    if (this.#over) return this;
    const step = this.#idOf();
    if (this.#steps) {
      this.log.add("step.started", { step, action: { index: this.#index++ } });
      this.log.add("step.decided", { step, action: { kind: "complete" } });
    }
    this.log.add("run.completed");
    return this;
  }

  #last(request: PolicyRequest) {
    const answer = this.#policy.decide(request, noView);
    if (answer instanceof Promise || !answer.ok) throw new Error("the fixture's policy has to answer");
    return { decision: answer.decision, specHash: this.specs.put(request.spec.text) };
  }

  #evaluate(request: PolicyRequest, index: number, status: string): string {
    const { decision, specHash } = this.#last(request);
    const seq = this.log.add("policy.evaluated", {
      step: request.stepId,
      action: {
        tool: request.tool,
        args: raw(request.canonicalArgs),
        spec_hash: specHash,
        policy_id: this.#policy.id === "" ? undefined : this.#policy.id,
        decision: raw(decisionText(decision)),
        view: viewOf({ status, step_count: index + 1, steps: index, approvals: this.#approvals }),
      },
    });
    this.asked.push({ request, seq });
    return decision.outcome;
  }
}

const noView = {} as PolicyView;

function decisionText(decision: Extract<PolicyAnswer, { ok: true }>["decision"]): string {
  const members = [`"outcome":${JSON.stringify(decision.outcome)}`];
  if (decision.reason !== "") members.push(`"reason":${JSON.stringify(decision.reason)}`);
  if (decision.kind !== "") members.push(`"kind":${JSON.stringify(decision.kind)}`);
  if (decision.capability !== null) members.push(`"capability":${decision.capability}`);
  if (decision.presentation !== null) members.push(`"presentation":${decision.presentation}`);
  return `{${members.join(",")}}`;
}

/** A view with all its members, zero unless told. */
export function viewOf(counts: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
  return {
    status: "RUNNING",
    step_count: 1,
    model_calls: 0,
    input_tokens: 0,
    output_tokens: 0,
    cached_input_tokens: 0,
    estimated_cost_micros: 0,
    active_ms: 0,
    steps: 0,
    approvals: 0,
    ...counts,
  };
}

/** agentrt's re-check fixture: a read, a wipe, a publish that is approved and resumed, a write. */
export function fixtureRun(policy: Policy = defaultPolicy()): LoopRun {
  const run = new LoopRun(policy);
  run.call({ tool: "read", args: '{"n":1}' });
  run.call({ tool: "wipe", args: '{"n":2}' });
  run.call({ tool: "publish", args: '{"n":3}' });
  run.call({ tool: "write", args: '{"n":4}' });
  return run.complete();
}

/** Folds and re-checks in one go. */
export function recheck(
  run: { readonly log: Log; readonly specs: SpecStore },
  policy: Policy,
  options: Partial<RecheckOptions> & { readonly fold?: FoldOptions } = {},
): RecheckReport {
  const { fold, ...rest } = options;
  return recheckRunSync(run.log.fold(fold), policy, { specs: run.specs.lookup, ...rest });
}

/** The report's evaluations, one line each. */
export function lines(report: RecheckReport): string[] {
  return report.evaluations.map((each) => {
    const now = each.rechecked?.outcome ?? "-";
    const resume = each.onResume ? " resume" : "";
    return `${each.stepIndex} ${each.tool} ${each.result} ${each.recorded.outcome}->${now}${resume}`;
  });
}
