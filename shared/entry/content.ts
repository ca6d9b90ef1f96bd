/**
 * An entry's content as it is stored beside its leaf: two JSON texts of the same form, one with the values of the
 * sections' fields, one with their salts in hex. A value's text is spliced in as it is, so that a number keeps the
 * digits that it was sent with; it is therefore read back with our own reader, never with `JSON.parse`.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import { JsonReader } from "../json/reader.ts";
import type { SectionName } from "./commitment.ts";
import { SECTIONS } from "./commitment.ts";

/** Canonical texts by field, by section. */
export type FieldTexts = ReadonlyMap<SectionName, ReadonlyMap<string, string>>;

function isSection(name: string): name is SectionName {
  return (SECTIONS as readonly string[]).includes(name);
}

/** Splits `{"action":{"tool":"x",...},...}` into the fields' texts. Throws `RunsealError("malformed-content")`. */
export function splitSections(text: string): FieldTexts {
  const out = new Map<SectionName, Map<string, string>>();
  try {
    const reader = new JsonReader(text);
    reader.enterObject();
    for (let section = reader.nextKey(); section !== null; section = reader.nextKey()) {
      if (!isSection(section))
        throw new RunsealError("malformed-content", "the content names a section that is none");
      const fields = new Map<string, string>();
      reader.enterObject();
      for (let name = reader.nextKey(); name !== null; name = reader.nextKey()) {
        fields.set(name, reader.readCanonical());
      }
      out.set(section, fields);
    }
    reader.finish();
  } catch (error) {
    if (error instanceof RunsealError && error.code === "malformed-content") throw error;
    throw new RunsealError("malformed-content", "the stored content is not the JSON that it was stored as");
  }
  return out;
}

/** Joins texts by section; the inverse of `splitSections`. Names are plain (`[a-z0-9_.]`), so they need no escaping. */
export function joinSections(sections: FieldTexts): string {
  const parts: string[] = [];
  for (const [section, fields] of sections) {
    const members: string[] = [];
    for (const [name, text] of fields) members.push(`"${name}":${text}`);
    parts.push(`"${section}":{${members.join(",")}}`);
  }
  return `{${parts.join(",")}}`;
}
