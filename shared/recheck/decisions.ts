/**
 * The `decisions` policy: a client ran its own policy over the exported evaluations, and its decisions are compared as
 * any policy's are (docs/policies.md, "decisions"). An evaluation without a decision is not re-checkable, never same.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import { jsonPointer } from "../json/pointer.ts";
import type { GivenDecision, GivenDecisions } from "./decisions-schema.ts";
import type { Decision, FoldedRun } from "./model.ts";
import type { EvaluationPlace, Policy, PolicyAnswer, PolicyRequest } from "./policy.ts";
import type { PolicyView } from "./view.ts";

export interface DecisionsPolicy extends Policy {
  /**
   * Demands that each decision is for an evaluation of the run. Throws `RunsealError("policy-invalid")` with the
   * pointer of the first that is not: a decision that is compared with nothing must not go unnoticed.
   */
  checkRun(folded: FoldedRun): void;
}

const NONE = { ok: false, error: "no decision was given for it", unanswered: true } as const;

/** The policy that answers with the decisions. It answers for one run. */
export function decisionsPolicy(given: GivenDecisions): DecisionsPolicy {
  return new Decisions(given);
}

/** Whether the policy is one of given decisions. */
export function isDecisions(policy: Policy): policy is DecisionsPolicy {
  return policy instanceof Decisions;
}

class Decisions implements DecisionsPolicy {
  readonly id: string;
  readonly #given: GivenDecisions;
  readonly #bySeq = new Map<number, GivenDecision>();
  readonly #byHash = new Map<string, GivenDecision>();

  constructor(given: GivenDecisions) {
    this.#given = given;
    this.id = given.policyId;
    for (const decision of given.list) {
      if (decision.seq !== null) this.#bySeq.set(decision.seq, decision);
      if (decision.hash !== null) this.#byHash.set(decision.hash, decision);
    }
  }

  checkRun(folded: FoldedRun): void {
    const hashes = new Map(folded.evaluations.map(({ seq, hash }) => [seq, hash]));
    const seqs = new Map(folded.evaluations.map(({ seq, hash }) => [hash, seq]));
    const taken = new Set<number>();
    for (const [index, { seq, hash }] of this.#given.list.entries()) {
      const place = seq ?? seqs.get(hash ?? "");
      const known = place === undefined ? undefined : hashes.get(place);
      const problem =
        place === undefined || known === undefined
          ? "the run has no such evaluation"
          : hash !== null && hash !== known
            ? "the evaluation has another hash"
            : taken.has(place)
              ? "the evaluation has a decision already"
              : null;
      if (problem !== null)
        throw new RunsealError("policy-invalid", problem, this.#given.pointer + jsonPointer(index));
      if (place !== undefined) taken.add(place);
    }
  }

  decide(): PolicyAnswer {
    return NONE;
  }

  decideAgain(
    _request: PolicyRequest,
    _view: PolicyView,
    _recorded: Decision,
    { seq, hash }: EvaluationPlace,
  ): PolicyAnswer {
    return (this.#bySeq.get(seq) ?? this.#byHash.get(hash))?.answer ?? NONE;
  }
}
