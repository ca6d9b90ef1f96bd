/**
 * Entries for the tests of the catalogue.
 *
 * @module
 */
import { jsonText, parseJsonValue } from "../../../shared/json/value.ts";
import { kindSpec, type SectionContent, validateEntrySections } from "../../../shared/kinds/catalogue.ts";
import type { SectionName } from "../../../shared/kinds/validate.ts";

export const H = "ab".repeat(32);
export const VIEW = {
  status: "RUNNING",
  step_count: 3,
  model_calls: 4,
  input_tokens: 1200,
  output_tokens: 55,
  cached_input_tokens: 0,
  estimated_cost_micros: 311,
  active_ms: 1234,
  steps: 3,
  approvals: 0,
};
export const VIEW_TEXT = JSON.stringify(VIEW);
export const EVALUATED = { tool: "t", args: { a: 1 }, decision: { outcome: "allow" } };

/** Sections of an entry from its JSON text, as the entry parser makes them; `{"$commitment": ...}` becomes one. */
export function sectionsOf(text: string): Map<SectionName, SectionContent> {
  const out = new Map<SectionName, SectionContent>();
  const entry = parseJsonValue(text);
  if (!(entry instanceof Map)) throw new Error("an object is expected");
  for (const [name, section] of entry) {
    if (!(section instanceof Map)) throw new Error("a section is an object");
    const texts = new Map<string, string>();
    const commitments = new Map<string, unknown>();
    let tag: string | null = null;
    for (const [field, value] of section) {
      if ((name === "outcome" && field === "status") || (name === "authorization" && field === "type"))
        tag = value as string;
      else if (value instanceof Map && value.has("$commitment")) commitments.set(field, true);
      else texts.set(field, jsonText(value));
    }
    out.set(name as SectionName, { tag, texts, commitments });
  }
  return out;
}

/** "code pointer" of the first problem, or "valid". */
export function check(kind: string, entry: unknown): string {
  const spec = kindSpec(kind);
  if (spec === undefined) throw new Error(`no kind ${kind}`);
  const problem = validateEntrySections(
    spec,
    sectionsOf(typeof entry === "string" ? entry : JSON.stringify(entry)),
  );
  return problem === null ? "valid" : `${problem.code} ${problem.pointer}`;
}
