/**
 * The lines of a bundle for the second verifier, written from docs/format.md section 12 alone.
 *
 * @module
 */
import { Malformed, Unsupported } from "./second-formats.ts";
import type { Json } from "./second-json.ts";
import { Num, parseStrict } from "./second-json.ts";

/** What ends the reading: the line is not strict JSON. */
export class NoJson extends Malformed {}

type Kind =
  | "text"
  | "number"
  | "positive"
  | "hex16"
  | "hex32"
  | "hex64"
  | "fields"
  | "signatures"
  | "path"
  | "section";
const MEMBERS: Record<string, Record<string, Kind>> = {
  header: { runseal: "text", registry_id: "hex32", origin: "text", from: "positive", to: "number" },
  registry: { t: "text", epoch: "number", record: "text", signatures: "signatures" },
  leaf: { t: "text", seq: "positive", hash: "hex32", leaf: "text" },
  hash: { t: "text", seq: "positive", hash: "hex32" },
  content: { t: "text", seq: "positive", fields: "fields" },
  disclosure: { t: "text", seq: "positive", fields: "fields" },
  checkpoint: { t: "text", checkpoint: "text" },
  tenant: { t: "text", checkpoint: "text", index: "number", leaf: "text", path: "path", consistency: "path" },
  cosignature: {
    t: "text",
    vkey: "text",
    checkpoint: "text",
    index: "number",
    leaf: "text",
    path: "path",
    consistency: "path",
  },
  field: { section: "section", name: "text", salt: "hex16", text: "text" },
  signature: { key: "hex32", signature: "hex64" },
};
const ORDER = ["registry", "leaf", "checkpoint", "tenant", "cosignature"];
export const stageOf = (t: string) =>
  ORDER.indexOf(["hash", "content", "disclosure"].includes(t) ? "leaf" : t);

// biome-ignore lint/suspicious/noExplicitAny: the members were checked one by one
export type Line = any;

/** Section 12: the members of one object. `later` collects what makes it unsupported. */
function members(json: Json, kinds: Record<string, Kind>, later: string[]): Line {
  if (!(json instanceof Map)) throw new Malformed("no object");
  const out: Record<string, unknown> = {};
  for (const name of json.keys()) if (!Object.hasOwn(kinds, name)) later.push(name);
  for (const [name, kind] of Object.entries(kinds)) {
    const value = json.get(name);
    if (value === undefined) throw new Malformed("a member is missing");
    if (kind === "number" || kind === "positive") {
      const literal = value instanceof Num ? value.literal : "";
      const number = Number(literal);
      if (!/^(?:0|[1-9][0-9]*)$/.test(literal) || !Number.isSafeInteger(number))
        throw new Malformed("no number");
      if (kind === "positive" && number === 0) throw new Malformed("no number from 1");
      out[name] = number;
    } else if (kind === "fields" || kind === "signatures") {
      if (!Array.isArray(value)) throw new Malformed("no array");
      out[name] = value.map((one) => members(one, MEMBERS[kind.slice(0, -1)] ?? {}, later));
    } else if (kind === "path") {
      if (!Array.isArray(value)) throw new Malformed("no array");
      out[name] = value.map((one) => {
        if (typeof one !== "string" || !/^[0-9a-f]{64}$/.test(one)) throw new Malformed("no hex");
        return one;
      });
    } else {
      const length = kind === "hex16" ? 32 : kind === "hex32" ? 64 : kind === "hex64" ? 128 : null;
      if (typeof value !== "string") throw new Malformed("no text");
      if (length !== null && (value.length !== length || !/^[0-9a-f]*$/.test(value)))
        throw new Malformed("no hex");
      if (kind === "section" && !["action", "authorization", "outcome"].includes(value))
        throw new Malformed("no section");
      out[name] = value;
    }
  }
  return out;
}

export function readLine(text: string, first: boolean): Line {
  let json: Json;
  try {
    if (text.length > 16_777_216) throw new Malformed("too long");
    json = parseStrict(text);
  } catch (error) {
    throw error instanceof Malformed ? error : new NoJson("no strict JSON");
  }
  const t = json instanceof Map ? json.get(first ? "runseal" : "t") : undefined;
  if (typeof t !== "string") throw new Malformed("the line does not say what it is");
  if (first ? t !== "bundle.v1" : stageOf(t) < 0) throw new Unsupported("unknown");
  const later: string[] = [];
  const line = members(json, MEMBERS[first ? "header" : t] ?? {}, later);
  if (later.length > 0) throw new Unsupported("an unknown member");
  return line;
}
