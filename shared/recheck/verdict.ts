/**
 * Rows 8 to 11 of the decision table (docs/recheck.md, "The comparison"): a recorded decision against a new one.
 *
 * @module
 */
import { canonicalJson } from "../json/canonical.ts";
import type { Verdict } from "./evaluation.ts";
import type { Decision } from "./model.ts";
import { refusalOf } from "./policy.ts";

/**
 * The answer with the recorded texts in place of equal ones, so that a report keeps nothing that is there already; null
 * where its texts are others. What equals a recorded text is canonical, and so is not read again.
 */
export function recordedTexts(answer: Decision, recorded: Decision): Decision | null {
  const { outcome, reason, kind, capability, presentation } = answer;
  if (capability !== recorded.capability || presentation !== recorded.presentation) return null;
  if (capability === null && presentation === null) return answer;
  if (outcome === recorded.outcome && reason === recorded.reason && kind === recorded.kind) return recorded;
  return {
    outcome,
    reason,
    kind,
    capability: recorded.capability,
    presentation: recorded.presentation,
  };
}

/** The answer with its JSON in canonical form, and why it would be refused. */
export function canonicalDecision(answer: Decision): {
  readonly decision: Decision;
  readonly refusal: string | null;
} {
  const refusal = refusalOf(answer);
  const shown = (text: string | null) => {
    if (text === null || text.trim() === "") return null;
    // What is no usable JSON can't stand in the report's JSON: it is shown as a string.
    return refusal === null ? canonicalJson(text) : JSON.stringify(text);
  };
  const { outcome, reason, kind, capability, presentation } = answer;
  const decision = {
    outcome,
    reason,
    kind,
    capability: shown(capability),
    presentation: shown(presentation),
  };
  return { decision, refusal };
}

/** Row 8: one of the two decisions, or both, is one that the runtime refuses. */
export function refusedVerdict(
  refusal: string | null,
  refused: string | null,
  recorded: Decision,
  rechecked: Decision,
): Verdict {
  if (refusal === null) {
    const detail = `the recorded decision was refused as invalid (${refused}); the policy now returns a valid one`;
    return { result: "different", detail };
  }
  if (refusal === refused && rechecked.outcome === recorded.outcome && rechecked.kind === recorded.kind) {
    return { result: "same", detail: `an invalid decision, refused as recorded: ${refusal}` };
  }
  return { result: "different", detail: `policy returned an invalid decision: ${refusal}` };
}

/** Rows 9 to 11: what differs, "" where the outcomes say it all; null where nothing does. */
export function difference(recorded: Decision, rechecked: Decision, sameSpec: boolean): string | null {
  if (recorded.outcome !== rechecked.outcome) return "";
  if (recorded.outcome !== "require_approval") return null;
  if (recorded.kind !== rechecked.kind) {
    return `asks for approval kind ${JSON.stringify(rechecked.kind)}, not ${JSON.stringify(recorded.kind)}`;
  }
  // The approval hash is over these, and over a request that is the same but for its spec.
  const same =
    sameSpec &&
    (recorded.capability ?? "{}") === (rechecked.capability ?? "{}") &&
    (recorded.presentation ?? "{}") === (rechecked.presentation ?? "{}");
  return same ? null : "asks for another approval: its capability, presentation, or tool spec changed";
}
