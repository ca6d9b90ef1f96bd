/**
 * Decisions and views as an evaluation records them, from their canonical texts. Unknown members are passed over, as
 * agentrt's decoder does; a member of another type is why the record does not decode.
 *
 * @module
 */
import { JsonReader } from "../json/reader.ts";
import { detached, integerOf } from "./fields.ts";
import type { Count, Decision, RecordedView } from "./model.ts";

/** What was decoded, or why it was not. */
export type Decoded<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly why: string };

/** The recorded decision. */
export function decodeDecision(text: string | undefined): Decoded<Decision> {
  if (text === undefined) return { ok: false, why: "decision is missing" };
  const reader = new JsonReader(text);
  if (reader.peek() !== "object") return { ok: false, why: "decision is not an object" };
  const texts: Record<"outcome" | "reason" | "kind", string> = { outcome: "", reason: "", kind: "" };
  let capability: string | null = null;
  let presentation: string | null = null;
  reader.enterObject();
  for (let key = reader.nextKey(); key !== null; key = reader.nextKey()) {
    if (key === "capability") capability = detached(reader.readCanonical());
    else if (key === "presentation") presentation = detached(reader.readCanonical());
    else if (key !== "outcome" && key !== "reason" && key !== "kind") reader.skipValue();
    else if (reader.peek() === "null") reader.skipValue();
    else if (reader.peek() !== "string") return { ok: false, why: `decision.${key} is not a string` };
    else texts[key] = detached(reader.readString());
  }
  return { ok: true, value: { ...texts, capability, presentation } };
}

const COUNTS = [
  "step_count",
  "model_calls",
  "input_tokens",
  "output_tokens",
  "cached_input_tokens",
  "estimated_cost_micros",
  "active_ms",
  "steps",
  "approvals",
] as const;
const COUNT_NAMES: ReadonlySet<string> = new Set(COUNTS);

/** The recorded view; null where there is none. */
export function decodeView(text: string | undefined): Decoded<RecordedView | null> {
  if (text === undefined || text === "null") return { ok: true, value: null };
  const reader = new JsonReader(text);
  if (reader.peek() !== "object") return { ok: false, why: "view is not an object" };
  let status = "";
  const counts = new Map<string, Count>();
  reader.enterObject();
  for (let key = reader.nextKey(); key !== null; key = reader.nextKey()) {
    if (key === "status" && reader.peek() !== "null") {
      if (reader.peek() !== "string") return { ok: false, why: "view.status is not a string" };
      status = detached(reader.readString());
    } else if (COUNT_NAMES.has(key) && reader.peek() !== "null") {
      const count = integerOf(reader.readCanonical());
      if (count === null) return { ok: false, why: `view.${key} is not an integer` };
      counts.set(key, count);
    } else {
      reader.skipValue();
    }
  }
  const count = (name: (typeof COUNTS)[number]): Count => counts.get(name) ?? 0;
  return {
    ok: true,
    value: {
      status,
      step_count: count("step_count"),
      model_calls: count("model_calls"),
      input_tokens: count("input_tokens"),
      output_tokens: count("output_tokens"),
      cached_input_tokens: count("cached_input_tokens"),
      estimated_cost_micros: count("estimated_cost_micros"),
      active_ms: count("active_ms"),
      steps: count("steps"),
      approvals: count("approvals"),
    },
  };
}

/** Whether one of the view's counts is a number that a double can't hold. */
export function viewHasTextNumber(view: RecordedView): boolean {
  return COUNTS.some((name) => typeof view[name] === "string");
}
