/**
 * The `module` policy: JavaScript of the sender's own, `export function decide(request, run)`, in a sandbox that is handed
 * in (docs/policies.md, "module"). Each evaluation is run twice; what the sandbox answers is text, and is read strictly.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import { JsonReader } from "../json/reader.ts";
import { readOutcome } from "./decisions-schema.ts";
import { hashText, type Sha256 } from "./hash.ts";
import type { Policy, PolicyAnswer, PolicyRequest } from "./policy.ts";
import { requestValue, viewValue } from "./values.ts";
import type { PolicyView } from "./view.ts";

/** UTF-16 units of one decision's JSON: what a record of one may have. */
const MAX_DECISION_TEXT = 65_536;

/** UTF-16 units of what a module is handed for one evaluation: all the steps that it saw are in it. */
const MAX_INPUT_TEXT = 8 * 1024 * 1024;

/** One run of `decide`: the decision's JSON text, or why there is none. */
export type SandboxAnswer = { readonly decision: string } | { readonly failed: string };

/** Runs a module's `decide`, without network, clock and randomness. */
export interface Sandbox {
  /**
   * Both answers to one evaluation, each from values of its own.
   *
   * @param input JSON text of `{request, run}`
   */
  decideTwice(input: string): Promise<readonly [SandboxAnswer, SandboxAnswer]>;
}

/** The identity of a module's source. */
export function modulePolicyId(source: string, crypto: Sha256): string {
  return `runseal-module/sha256:${hashText(crypto, source)}`;
}

/** The policy of a module in a sandbox. */
export function modulePolicy(id: string, sandbox: Sandbox): Policy {
  return {
    id,
    async decide(request: PolicyRequest, view: PolicyView): Promise<PolicyAnswer> {
      const input = JSON.stringify({ request: requestValue(request), run: viewValue(view) });
      if (input.length > MAX_INPUT_TEXT) {
        const error = `what its policy saw is larger than a module is handed (${MAX_INPUT_TEXT} characters)`;
        return { ok: false, error, unanswered: true };
      }
      const [first, second] = await sandbox.decideTwice(input);
      if (!sameAnswer(first, second))
        return {
          ok: false,
          error: "the policy is not deterministic: it answered the same evaluation twice, and differently",
        };
      return "failed" in first ? { ok: false, error: first.failed } : readDecision(first.decision);
    },
  };
}

function sameAnswer(a: SandboxAnswer, b: SandboxAnswer): boolean {
  if ("failed" in a || "failed" in b) return "failed" in a && "failed" in b && a.failed === b.failed;
  return a.decision === b.decision;
}

/** The decision that a module returned, as a recorded one is read. */
function readDecision(text: string): PolicyAnswer {
  if (text.length > MAX_DECISION_TEXT) return { ok: false, error: "its decision is too long" };
  try {
    const reader = new JsonReader(text);
    const decision = readOutcome(reader);
    reader.finish();
    return { ok: true, decision };
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    return {
      ok: false,
      error: `its decision is none: ${error.pointer ?? ""} ${error.message}`.replace("  ", " "),
    };
  }
}
