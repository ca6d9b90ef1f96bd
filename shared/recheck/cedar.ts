/**
 * The `cedar` policy: a Cedar policy set, asked about each request (docs/policies.md, "cedar"). An evaluation error is a
 * policy failure, and never a denial.
 *
 * @module
 */
import { pureCrypto } from "../crypto/pure.ts";
import { RunsealError } from "../errors.ts";
import { quote } from "../json/chars.ts";
import type { CedarEngine, CedarSet } from "./cedar-engine.ts";
import { type CedarRule, checkCedarEntities, readCedarRules } from "./cedar-rules.ts";
import { type CedarSource, cedarPolicyId, type EntityName, readCedarSource } from "./cedar-source.ts";
import { CedarValueError, cedarCount, cedarText, type Mapped } from "./cedar-values.ts";
import { hashText, type Sha256 } from "./hash.ts";
import type { Decision } from "./model.ts";
import { INTERRUPTED_SIDE_EFFECT } from "./model.ts";
import { type Policy, type PolicyAnswer, type PolicyRequest, plainDecision } from "./policy.ts";
import type { PolicyRun, PolicyView } from "./view.ts";

export interface CedarOptions {
  /** Noble unless told. */
  readonly crypto?: Sha256;
  /** The identity, in place of the computed one. */
  readonly policyId?: string | null;
}

/** After so many failures of the engine itself, it is not asked again: each costs a new instance. */
const MAX_ENGINE_FAILURES = 3;
const ENGINE_FAILED = "Cedar failed on it before";

/**
 * The policy that a Cedar document describes. Throws `RunsealError("policy-invalid")` with a pointer into the document.
 *
 * @param json the document: the policies' text as a JSON string, or an object that has it
 */
export function cedarPolicy(json: string, engine: CedarEngine, options: CedarOptions = {}): Policy {
  const source = readCedarSource(json);
  const pointer = json.startsWith('"') ? "" : "/policies";
  const crypto = options.crypto ?? pureCrypto;
  try {
    const rules = readCedarRules(engine, source.policies, pointer);
    checkCedarEntities(engine, source.entities, "/entities");
    return new Cedar(source, rules, engine, options.policyId ?? cedarPolicyId(source, crypto), crypto);
  } catch (error) {
    if (!(error instanceof RunsealError) || error.code !== "cedar-failed") throw error;
    throw new RunsealError("policy-invalid", error.message, pointer);
  }
}

/** What `statefulIsAuthorized` answers. */
type CedarAnswer =
  | { readonly type: "failure"; readonly errors: readonly { readonly message: string }[] }
  | {
      readonly type: "success";
      readonly response: {
        readonly decision: "allow" | "deny";
        readonly diagnostics: {
          readonly reason: readonly string[];
          readonly errors: readonly {
            readonly policyId: string;
            readonly error: { readonly message: string };
          }[];
        };
      };
    };

class Cedar implements Policy {
  readonly id: string;
  readonly #source: CedarSource;
  readonly #rules: ReadonlyMap<string, CedarRule>;
  readonly #engine: CedarEngine;
  readonly #set: CedarSet;
  #failures = 0;
  /** What is the same for all evaluations of a run; built for the run that was asked about last. */
  #run: { readonly of: PolicyRun; readonly text: string; readonly mapped: Mapped } | null = null;

  constructor(
    source: CedarSource,
    rules: ReadonlyMap<string, CedarRule>,
    engine: CedarEngine,
    id: string,
    crypto: Sha256,
  ) {
    this.id = id;
    this.#source = source;
    this.#rules = rules;
    this.#engine = engine;
    this.#set = { key: hashText(crypto, source.policies), text: source.policies };
  }

  decide(request: PolicyRequest, view: PolicyView): PolicyAnswer {
    const mapped: Mapped = { nulls: false, numbers: false };
    let answer: CedarAnswer;
    try {
      const call = this.#callText(request, view, mapped);
      if (this.#failures >= MAX_ENGINE_FAILURES) return failure(ENGINE_FAILED);
      answer = this.#engine.authorize(this.#set, (id) => `${call}${id}"}`) as CedarAnswer;
    } catch (error) {
      if (error instanceof CedarValueError) return failure(`Cedar can't read the request: ${error.message}`);
      if (!(error instanceof RunsealError) || error.code !== "cedar-failed") throw error;
      this.#failures++;
      return failure(error.message);
    }
    if (answer.type === "failure") {
      return failure(`Cedar can't read the request: ${answer.errors[0]?.message ?? "no reason given"}`);
    }
    const { decision, diagnostics } = answer.response;
    const failed = inOrder(diagnostics.errors.map(({ policyId }) => policyId))[0];
    if (failed !== undefined) {
      const label = this.#rules.get(failed)?.label ?? failed;
      const error = diagnostics.errors.find(({ policyId }) => policyId === failed)?.error.message;
      return failure(`policy ${label} has an error: ${error}`);
    }
    const note = noteOf(mapped);
    const answered = this.#answer(request, decision, diagnostics.reason);
    return note === null || !answered.ok ? answered : { ...answered, note };
  }

  /**
   * Cedar says whether to ask for approval, and a `@kind` says what for. The words of the question are the runtime's: where
   * the recorded decision asked, they are its own. A re-run of an attempt with an unknown outcome is a fact of the
   * record: it is asked for again unless it is now denied.
   */
  decideAgain(request: PolicyRequest, view: PolicyView, recorded: Decision): PolicyAnswer {
    const answer = this.decide(request, view);
    if (!answer.ok || recorded.outcome !== "require_approval") return answer;
    const { outcome, reason, kind } = answer.decision;
    const interrupted = recorded.kind === INTERRUPTED_SIDE_EFFECT && outcome === "allow";
    if (outcome !== "require_approval" && !interrupted) return answer;
    const { capability, presentation } = recorded;
    const asked = interrupted || kind === "" || recorded.kind === INTERRUPTED_SIDE_EFFECT;
    const decision: Decision = {
      outcome: "require_approval",
      reason,
      kind: asked ? recorded.kind : kind,
      capability,
      presentation,
    };
    return { ...answer, decision };
  }

  #answer(request: PolicyRequest, decision: "allow" | "deny", reasons: readonly string[]): PolicyAnswer {
    const rules = inOrder(reasons).flatMap((id) => this.#rules.get(id) ?? []);
    const wanted = decision === "allow" ? "require_approval" : "abort";
    const strictest = rules.find(({ outcome }) => outcome === wanted) ?? rules[0];
    if (strictest === undefined) return plainDecision("deny", "no policy permits it");
    const labels = rules.map(({ label }) => label).join(", ");
    const reason =
      strictest.reason === ""
        ? `${decision === "allow" ? "permitted" : "forbidden"} by ${labels}`
        : strictest.reason;
    if (strictest.outcome !== "require_approval") return plainDecision(strictest.outcome, reason);
    const subject = `{"args":${request.canonicalArgs},"tool":${quote(request.tool)}}`;
    return {
      ok: true,
      decision: {
        outcome: "require_approval",
        reason,
        kind: strictest.kind,
        capability: subject,
        presentation: subject,
      },
    };
  }

  /** The call's JSON, up to the id of the policy set, which comes last. */
  #callText(request: PolicyRequest, view: PolicyView, mapped: Mapped): string {
    const { principal, action, resource, args, entities } = this.#source;
    const { spec, tool } = request;
    const values = cedarText(request.canonicalArgs, mapped);
    const context =
      `{${values === "" ? "" : `"${args}":${values},`}` +
      `"tool":{"name":${quote(tool)},"side_effect":${quote(spec.sideEffect)},"terminal":${spec.terminal}},` +
      `"run":${this.#runText(view.run, mapped)},"approvals":${approvalsText(view)}}`;
    return (
      `{"principal":${entity(principal, request.principal)},"action":${entity(action, tool)},` +
      `"resource":${entity(resource, tool)},"context":${context},"entities":${entities},"preparsedPolicySetId":"`
    );
  }

  #runText(run: PolicyRun, mapped: Mapped): string {
    let known = this.#run;
    if (known === null || !sameRun(known.of, run)) {
      const own: Mapped = { nulls: false, numbers: false };
      known = { of: run, text: fixedRunText(run, own), mapped: own };
      this.#run = known;
    }
    if (known.mapped.numbers) mapped.numbers = true;
    if (known.mapped.nulls) mapped.nulls = true;
    const { status, steps: _steps, approvals: _approvals, ...counts } = run.recorded;
    let text = `${known.text}"status":${quote(status)}`;
    for (const [name, count] of Object.entries(counts)) text += `,"${name}":${cedarCount(count, mapped)}`;
    return `${text}}`;
  }
}

/** Ids in the order of the policies' text: Cedar gives them in any order, another each time. */
function inOrder(ids: readonly string[]): readonly string[] {
  const place = (id: string) => Number(id.slice("policy".length));
  return ids.length < 2 ? ids : [...ids].sort((a, b) => place(a) - place(b));
}

function failure(error: string): PolicyAnswer {
  return { ok: false, error };
}

function entity({ type, id }: EntityName, ofRequest: string): string {
  return `{"type":${quote(type)},"id":${quote(id ?? ofRequest)}}`;
}

function sameRun(a: PolicyRun, b: PolicyRun): boolean {
  return a.id === b.id && a.createdAt === b.createdAt && a.goal === b.goal && a.limits === b.limits;
}

/** The members of the run that no evaluation changes. Its time is in whole milliseconds: Cedar's datetime has no more. */
function fixedRunText({ id, goal, limits, createdAt }: PolicyRun, mapped: Mapped): string {
  const time = createdAt === null ? "" : `"created_at_ms":${createdAt / 1_000_000n},`;
  const bounds = limits === null ? "" : cedarText(limits, mapped);
  return `{"id":${quote(id)},"goal":${quote(goal)},${time}${bounds === "" ? "" : `"limits":${bounds},`}`;
}

/** How many approvals stood how at the evaluation. */
function approvalsText({ approvals }: PolicyView): string {
  const counts = { pending: 0, approved: 0, rejected: 0, expired: 0 };
  for (const { status } of approvals ?? []) counts[status]++;
  return JSON.stringify(counts);
}

function noteOf({ nulls, numbers }: Mapped): string | null {
  if (!nulls && !numbers) return null;
  const what = nulls && numbers ? "nulls and numbers" : nulls ? "nulls" : "numbers";
  return `evaluation(s) hold ${what} that Cedar has no value for: docs/policies.md says what it was handed`;
}
