/**
 * Tool specs: agentrt's form `{name, description, input_schema, side_effect, timeout}` is
 * what is hashed and stored. Other forms are turned into it; what they do not say stays empty, so that a policy which
 * goes by the side-effect class denies a tool whose class nobody stated.
 *
 * @module
 */
import { type JsonValue, jsonText, parseJsonValue } from "../../shared/json/value.ts";
import { hashText, type Sha256 } from "../../shared/recheck/hash.ts";
import { decodeSpec, type ToolSpec } from "../../shared/recheck/spec.ts";
import { at, isObject, numberOf, objectOf, textAt } from "./tree.ts";

/** A spec and its hash. */
export interface HashedSpec {
  readonly spec: ToolSpec;
  readonly hash: string;
}

/** The specs of one run, by tool. */
export class SpecShelf {
  readonly #crypto: Sha256;
  readonly #known = new Map<string, HashedSpec>();
  readonly #made = new Map<string, HashedSpec>();

  constructor(crypto: Sha256) {
    this.#crypto = crypto;
  }

  /** Adds the specs that can be read, and says whether all could; a tool that has one already keeps it. */
  add(specs: readonly JsonValue[]): boolean {
    let all = true;
    for (const value of specs) {
      const spec = specOf(value);
      if (spec === undefined) all = false;
      else if (!this.#known.has(spec.name)) this.#known.set(spec.name, this.#hashed(spec));
    }
    return all;
  }

  /** The tool's spec, where somebody gave one. */
  get(tool: string): HashedSpec | undefined {
    return this.#known.get(tool);
  }

  /** The tool's spec; where there is none, one that says nothing is made, so that an evaluation can name it. */
  getOrMake(tool: string): HashedSpec | undefined {
    const there = this.#known.get(tool) ?? this.#made.get(tool);
    if (there !== undefined) return there;
    const spec = specOf(objectOf([["name", tool]]));
    if (spec === undefined) return undefined;
    const made = this.#hashed(spec);
    this.#made.set(tool, made);
    return made;
  }

  /** The specs that somebody gave, in the order of their tools' names (code units), as agentrt lists them. */
  get known(): HashedSpec[] {
    return [...this.#known.entries()]
      .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
      .map(([, spec]) => spec);
  }

  /** The specs that were made because nobody gave one. */
  get made(): HashedSpec[] {
    return [...this.#made.values()];
  }

  #hashed(spec: ToolSpec): HashedSpec {
    return { spec, hash: hashText(this.#crypto, spec.text) };
  }
}

/**
 * The specs in a file: one, a list, or an object with a list of `tools`. Throws `JsonError` for text that the log would
 * refuse.
 */
export function readToolSpecs(text: string): readonly JsonValue[] {
  const value = parseJsonValue(text);
  if (Array.isArray(value)) return value;
  const tools = at(value, "tools");
  return Array.isArray(tools) ? tools : [value];
}

/** A spec in any of the forms, or undefined where it is none. */
export function specOf(value: JsonValue): ToolSpec | undefined {
  const decoded = decodeSpec(jsonText(inOwnForm(value)));
  return decoded.ok ? decoded.value : undefined;
}

/** agentrt's form as it is; of the others name, description and schema. */
function inOwnForm(value: JsonValue): JsonValue {
  if (isObject(value) && value.has("input_schema") && value.has("side_effect")) return value;
  // OpenAI wraps what the others write plainly.
  const plain = isObject(at(value, "function")) ? at(value, "function") : value;
  const schema = at(plain, "input_schema") ?? at(plain, "inputSchema") ?? at(plain, "parameters");
  return objectOf([
    ["name", textAt(plain, "name")],
    ["description", textAt(plain, "description") ?? ""],
    ["input_schema", schema ?? new Map()],
    ["side_effect", textAt(value, "side_effect") ?? ""],
    ["timeout", numberOf(0)],
  ]);
}
