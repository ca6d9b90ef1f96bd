/**
 * Tool specs: decoded from their JSON, checked against their hash, each once per re-check.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import { canonicalJson } from "../json/canonical.ts";
import { JsonReader } from "../json/reader.ts";
import { hasUnheldNumber } from "./decimal.ts";
import type { Decoded } from "./decode.ts";
import { hashText, type Sha256 } from "./hash.ts";
import type { Problem } from "./model.ts";

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  /** A class, or any other text that the spec gives; "" where it gives none. */
  readonly sideEffect: string;
  /** Canonical text; null where the spec has none. */
  readonly inputSchema: string | null;
  /** Nanoseconds, as the literal that the spec gives; null where it gives none. */
  readonly timeout: string | null;
  readonly terminal: boolean;
  /** The whole spec in canonical form, unknown members and all: what is hashed. */
  readonly text: string;
  /** Whether it has a number that a double can't hold. */
  readonly textNumbers: boolean;
}

/** Decodes a spec from its JSON text. */
export function decodeSpec(json: string): Decoded<ToolSpec> {
  let text: string;
  try {
    text = canonicalJson(json);
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    return { ok: false, why: error.message };
  }
  const reader = new JsonReader(text);
  if (reader.peek() !== "object") return { ok: false, why: "it is not an object" };
  const strings = new Map([
    ["name", ""],
    ["description", ""],
    ["side_effect", ""],
  ]);
  let inputSchema: string | null = null;
  let timeout: string | null = null;
  let terminal = false;
  reader.enterObject();
  for (let key = reader.nextKey(); key !== null; key = reader.nextKey()) {
    const kind = reader.peek();
    if (key === "input_schema") inputSchema = reader.readCanonical();
    else if (kind === "null") reader.skipValue();
    else if (strings.has(key)) {
      if (kind !== "string") return { ok: false, why: `${key} is not a string` };
      strings.set(key, reader.readString());
    } else if (key === "timeout") {
      if (kind !== "number") return { ok: false, why: "timeout is not a number" };
      timeout = reader.readNumber();
    } else if (key === "terminal") {
      if (kind !== "boolean") return { ok: false, why: "terminal is not a boolean" };
      terminal = reader.readLiteral() === true;
    } else {
      reader.skipValue();
    }
  }
  const name = strings.get("name") ?? "";
  if (name === "") return { ok: false, why: "it has no name" };
  const description = strings.get("description") ?? "";
  const sideEffect = strings.get("side_effect") ?? "";
  const textNumbers = hasUnheldNumber(text);
  return {
    ok: true,
    value: { name, description, sideEffect, inputSchema, timeout, terminal, text, textNumbers },
  };
}

/** A stored spec by its hash, or why it can't be used. */
export type SpecRead = { readonly spec: ToolSpec } | { readonly problem: Problem };

/** Reads recorded specs through the caller's lookup, each once. */
export class SpecBook {
  readonly #lookup: (hash: string) => string | undefined;
  readonly #crypto: Sha256;
  readonly #read = new Map<string, SpecRead>();

  constructor(lookup: (hash: string) => string | undefined, crypto: Sha256) {
    this.#lookup = lookup;
    this.#crypto = crypto;
  }

  get(hash: string): SpecRead {
    const known = this.#read.get(hash);
    if (known !== undefined) return known;
    const read = this.#load(hash);
    this.#read.set(hash, read);
    return read;
  }

  #load(hash: string): SpecRead {
    const json = this.#lookup(hash);
    if (json === undefined) {
      return { problem: { reason: "spec-missing", words: `spec ${hash} is not stored` } };
    }
    const decoded = decodeSpec(json);
    if (!decoded.ok) {
      const words = `spec ${hash} does not decode: ${decoded.why}`;
      return { problem: { reason: "spec-undecodable", words } };
    }
    if (hashText(this.#crypto, decoded.value.text) !== hash) {
      return { problem: { reason: "spec-mismatch", words: `spec ${hash} does not match its hash` } };
    }
    return { spec: decoded.value };
  }
}

/** The current tools by name. Throws `RunsealError("current-tool")` for one that does not decode or is given twice. */
export function currentTools(texts: readonly string[]): Map<string, ToolSpec> {
  const out = new Map<string, ToolSpec>();
  for (const [index, json] of texts.entries()) {
    const decoded = decodeSpec(json);
    if (!decoded.ok) {
      throw new RunsealError("current-tool", `a current tool does not decode: ${decoded.why}`, `/${index}`);
    }
    if (out.has(decoded.value.name)) {
      throw new RunsealError("current-tool", "a current tool is given twice", `/${index}`);
    }
    out.set(decoded.value.name, decoded.value);
  }
  return out;
}
