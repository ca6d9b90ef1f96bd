/**
 * A run of one evaluation, whose fields a test changes.
 *
 * @module
 */
import { expect } from "vitest";
import { MAX_PAGE_TEXT } from "../../../shared/recheck/limits.ts";
import type { Policy } from "../../../shared/recheck/policy.ts";
import type { RecheckedEvaluation } from "../../../shared/recheck/report.ts";
import { answerOf, type Fields, Log, policyOf, recheck, SpecStore, TOOLS, viewOf } from "./support.ts";

/** A policy that allows everything. */
export const allow: Policy = policyOf(() => answerOf("allow"), "allow/v1");

/** One character more than a page carries. */
export const LONG = "x".repeat(MAX_PAGE_TEXT + 1);

export class OneCall {
  readonly log = new Log();
  readonly specs = new SpecStore();
  readonly specHash = this.specs.put(TOOLS.get("read")!);

  created(action: Fields = {}): this {
    this.log.add("run.created", {
      action: { goal: "g", limits: { max_steps: 3 }, tools: [this.specHash], ...action },
    });
    return this;
  }

  step(decided: Fields | null = { kind: "tool_call", tool: "read", args: { n: 1 } }, step = "s1"): this {
    this.log.add("step.started", { step, action: { index: 0 } });
    if (decided !== null) this.log.add("step.decided", { step, action: decided });
    return this;
  }

  evaluated(action: Fields = {}, step: string | null = "s1"): this {
    const decision = { outcome: "allow", reason: "because" };
    const fields = {
      tool: "read",
      args: { n: 1 },
      spec_hash: this.specHash,
      policy_id: "allow/v1",
      decision,
      view: viewOf(),
    };
    this.log.add("policy.evaluated", { step, action: { ...fields, ...action } });
    return this;
  }

  only(policy: Policy = allow, options: Parameters<typeof recheck>[2] = {}): RecheckedEvaluation {
    const { evaluations } = recheck(this, policy, options);
    expect(evaluations).toHaveLength(1);
    return evaluations[0]!;
  }
}

/** The run as it is re-checked without complaint. */
export function whole(): OneCall {
  return new OneCall().created().step();
}
