/**
 * Erases values and salts from an entry's stored content: of all fields, or of chosen ones. What is
 * left says which fields were erased, and nothing else of them; their commitments stay in the leaf.
 *
 * @module
 */
import type { SectionName } from "./commitment.ts";
import { joinSections, splitContent } from "./content.ts";
import type { FieldSelection } from "./field-selection.ts";

/** Values and salts as a row holds them (see row.ts); both null: all of it is erased, and its names are not known. */
export interface EntryContent {
  readonly values: string | null;
  readonly salts: string | null;
}

/** What is left of content whose fields are not known any more. */
export const ALL_ERASED: EntryContent = { values: null, salts: null };

/**
 * The content without the selected fields; null where it holds none of them, for they are erased already or never had a
 * value here. Throws `RunsealError("malformed-content")`.
 */
export function eraseContent(
  { values, salts }: EntryContent,
  selection: FieldSelection,
): EntryContent | null {
  if (values === null) return null;
  const { texts, erased } = splitContent(values);
  const gone = new Map([...erased].map(([section, names]) => [section, new Set(names)] as const));
  const keptTexts = new Map<SectionName, Map<string, string>>();
  const oldSalts = salts === null ? null : splitContent(salts).texts;
  const keptSalts = new Map<SectionName, Map<string, string>>();
  let removed = 0;
  let kept = 0;
  for (const [section, fields] of texts) {
    const left = new Map<string, string>();
    const leftSalts = new Map<string, string>();
    for (const [name, text] of fields) {
      if (selection.has(section, name)) {
        const names = gone.get(section) ?? new Set<string>();
        gone.set(section, names.add(name));
        removed += 1;
        continue;
      }
      kept += 1;
      left.set(name, text);
      const salt = oldSalts?.get(section)?.get(name);
      if (salt !== undefined) leftSalts.set(name, salt);
    }
    keptTexts.set(section, left);
    keptSalts.set(section, leftSalts);
  }
  if (removed === 0) return null;
  return { values: joinSections(keptTexts, gone), salts: kept === 0 ? null : joinSections(keptSalts) };
}
