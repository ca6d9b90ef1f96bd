/**
 * An entry's content as it is stored beside its leaf: two JSON texts of the same form, one with the values of the
 * sections' fields, one with their salts in hex. A value's text is spliced in as it is, so that a number keeps the
 * digits that it was sent with; it is therefore read back with our own reader, never with `JSON.parse`.
 *
 * The values name what was erased, in a last member: `"$erased":{"action":["args"]}`. So a field that was erased is told
 * from one whose value was never there.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import { JsonReader } from "../json/reader.ts";
import type { SectionName } from "./commitment.ts";
import { SECTIONS } from "./commitment.ts";

/** Canonical texts by field, by section. */
export type FieldTexts = ReadonlyMap<SectionName, ReadonlyMap<string, string>>;

/** Names of erased fields, by section. */
export type ErasedFields = ReadonlyMap<SectionName, ReadonlySet<string>>;

/** Values, or salts, with what was erased of them. */
export interface SplitContent {
  readonly texts: FieldTexts;
  readonly erased: ErasedFields;
}

/** The member that names what was erased. No section is called so. */
const ERASED = "$erased";
const NOTHING: ErasedFields = new Map();

function isSection(name: string): name is SectionName {
  return (SECTIONS as readonly string[]).includes(name);
}

function sectionOf(name: string): SectionName {
  if (isSection(name)) return name;
  throw new RunsealError("malformed-content", "the content names a section that is none");
}

function readErased(reader: JsonReader): ErasedFields {
  const out = new Map<SectionName, Set<string>>();
  reader.enterObject();
  for (let section = reader.nextKey(); section !== null; section = reader.nextKey()) {
    const names = new Set<string>();
    out.set(sectionOf(section), names);
    reader.enterArray();
    while (reader.nextElement()) names.add(reader.readString());
  }
  return out;
}

/** Splits `{"action":{"tool":"x",...},...}` into the fields' texts. Throws `RunsealError("malformed-content")`. */
export function splitSections(text: string): FieldTexts {
  return splitContent(text).texts;
}

/** The same, with the names of what was erased. Throws `RunsealError("malformed-content")`. */
export function splitContent(text: string): SplitContent {
  const out = new Map<SectionName, Map<string, string>>();
  let erased = NOTHING;
  try {
    const reader = new JsonReader(text);
    reader.enterObject();
    for (let member = reader.nextKey(); member !== null; member = reader.nextKey()) {
      if (member === ERASED) {
        erased = readErased(reader);
        continue;
      }
      const section = sectionOf(member);
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
  return { texts: out, erased };
}

/** Whether something of the content was erased. Most contents are told by their end, and not read. */
export function hasErased(text: string): boolean {
  return text.endsWith("]}}") && splitContent(text).erased.size > 0;
}

/** Joins texts by section; the inverse of `splitContent`. Names are plain (`[a-z0-9_.]`), so they need no escaping. */
export function joinSections(sections: FieldTexts, erased: ErasedFields = NOTHING): string {
  const parts: string[] = [];
  for (const [section, fields] of sections) {
    const members: string[] = [];
    for (const [name, text] of fields) members.push(`"${name}":${text}`);
    parts.push(`"${section}":{${members.join(",")}}`);
  }
  const gone = [...erased].map(([section, names]) => `"${section}":${JSON.stringify([...names].sort())}`);
  if (gone.length > 0) parts.push(`"${ERASED}":{${gone.join(",")}}`);
  return `{${parts.join(",")}}`;
}
