/**
 * From what an importer found to the JSON text of an entry: fields that the log would refuse are replaced by a marker,
 * and the entry's id is a digest of everything else in it.
 *
 * @module
 */
import { toHex, utf8 } from "../../shared/bytes.ts";
import { MAX_ENTRY_BYTES, MAX_VALUE_BYTES } from "../../shared/entry/limits.ts";
import { type JsonValue, jsonText } from "../../shared/json/value.ts";
import { type Losses, lossMarker } from "./lenient.ts";
import { entryName, type Hashing } from "./names.ts";
import { deeperThan, isObject, type JsonObject, MAX_SOURCE_DEPTH, objectOf } from "./tree.ts";

/** An entry without id, run and reporter. Members that are undefined are absent. */
export interface DraftEntry {
  readonly kind: string;
  readonly step?: string | undefined;
  readonly call?: string | undefined;
  /** RFC 3339, as the source writes it. */
  readonly at?: string | undefined;
  readonly action: JsonObject;
  readonly outcome?: JsonObject | undefined;
}

/** Where the entry belongs. `place` is its place in the run: equal contents at two places are two entries. */
export interface EntryPlace {
  readonly format: string;
  readonly run: string;
  readonly session: string | undefined;
  readonly place: string;
}

/** Fields that the catalogue wants as text, so that a marker cannot stand in for them: they are cut. */
const TEXT_FIELDS = new Set(["goal", "error", "detail", "description", "reason", "path", "command", "tool"]);
/** Characters of a text that was too long. */
const CUT_TEXT_CHARS = 100_000;
/** What an entry's fields may be together; the rest is room for the envelope. */
const ENTRY_BUDGET = MAX_ENTRY_BYTES - 16 * 1024;
/** How many places of one entry are named. */
const MAX_NAMED_LOSSES = 20;

/** The entry as JSON text, its id first. */
export function entryText(draft: DraftEntry, place: EntryPlace, losses: Losses, hashing: Hashing): string {
  const sections: (readonly [string, JsonObject])[] = [["action", new Map(draft.action)]];
  if (draft.outcome !== undefined) sections.push(["outcome", new Map(draft.outcome)]);
  makeAcceptable(sections, losses, hashing);
  const lost = losses.count === 0 ? [] : lossesIn(sections, losses);
  const action = sections[0]?.[1] ?? new Map<string, JsonValue>();
  if (lost.length > 0) action.set("extra", withLosses(action.get("extra"), lost));
  const content = jsonText(
    objectOf([
      ["kind", draft.kind],
      ["session", place.session],
      ["run", place.run],
      ["step", draft.step],
      ["call", draft.call],
      ["occurred_at", draft.at],
      ["reporter", "import"],
      ...sections.map(([name, fields]) => [name, unambiguous(fields)] as const),
    ]),
  );
  const id = entryName(place.format, place.run, place.place, content, hashing);
  return `{"id":"${id}",${content.slice(1)}`;
}

/** Replaces what is too long, or nests too deep, for the log. */
function makeAcceptable(
  sections: readonly (readonly [string, JsonObject])[],
  losses: Losses,
  hashing: Hashing,
): void {
  const sizes: { fields: JsonObject; name: string; bytes: number }[] = [];
  for (const [, fields] of sections) {
    for (const [name, value] of fields) {
      if (deeperThan(value, MAX_SOURCE_DEPTH)) fields.set(name, lossMarker(losses, "json-depth", ""));
      sizes.push({ fields, name, bytes: byteLength(jsonText(fields.get(name) ?? null)) });
    }
  }
  let total = sizes.reduce((sum, { bytes }) => sum + bytes, 0);
  for (const one of sizes.sort((a, b) => b.bytes - a.bytes)) {
    if (one.bytes <= MAX_VALUE_BYTES && total <= ENTRY_BUDGET) return;
    const reason = one.bytes > MAX_VALUE_BYTES ? "value-too-long" : "entry-too-long";
    const shorter = shortened(one.fields.get(one.name) ?? null, one.name, reason, losses, hashing);
    one.fields.set(one.name, shorter);
    total += byteLength(jsonText(shorter)) - one.bytes;
  }
}

/** UTF-8 bytes; a short text is not encoded for it. */
function byteLength(text: string): number {
  return text.length * 3 <= 4096 ? text.length * 3 : utf8(text).length;
}

function shortened(
  value: JsonValue,
  name: string,
  reason: "value-too-long" | "entry-too-long",
  losses: Losses,
  { crypto }: Hashing,
): JsonValue {
  if (typeof value === "string" && TEXT_FIELDS.has(name)) {
    const cut = value.slice(0, CUT_TEXT_CHARS).replace(/\p{Cs}$/u, "");
    losses.add(cut, reason);
    return cut;
  }
  const text = jsonText(value);
  const bytes = utf8(text);
  return lossMarker(losses, reason, typeof value === "string" ? value : text, [
    ["bytes", String(bytes.length)],
    ["sha256", toHex(crypto.sha256(bytes))],
  ]);
}

/** Places of repaired values: JSON pointers into the entry, with the reason. */
function lossesIn(sections: readonly (readonly [string, JsonObject])[], losses: Losses): JsonValue[] {
  const found: JsonValue[] = [];
  const walk = (value: JsonValue, pointer: string): void => {
    const reason = losses.reason(value);
    if (reason !== undefined && found.length < MAX_NAMED_LOSSES)
      found.push(
        objectOf([
          ["at", pointer],
          ["reason", reason],
        ]),
      );
    if (Array.isArray(value)) value.forEach((element, index) => void walk(element, `${pointer}/${index}`));
    else if (isObject(value)) {
      for (const [name, member] of value)
        walk(member, `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`);
    }
  };
  for (const [section, fields] of sections) {
    for (const [name, value] of fields) walk(value, `/${section}/${name}`);
  }
  return found;
}

function withLosses(extra: JsonValue | undefined, lost: JsonValue[]): JsonObject {
  const object = isObject(extra) ? new Map(extra) : objectOf([["source", extra]]);
  return object.set("lossy", lost);
}

/**
 * The section with values that would read as a commitment or a salted value (`{"$value": ...}`)
 * wrapped, so that the log keeps them as the source has them.
 */
function unambiguous(fields: JsonObject): JsonObject {
  const out: JsonObject = new Map();
  for (const [name, value] of fields) {
    const special = isObject(value) && ["$value", "$salt", "$commitment"].some((member) => value.has(member));
    out.set(name, special ? new Map([["$value", value]]) : value);
  }
  return out;
}
