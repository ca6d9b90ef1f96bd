/**
 * A Cedar policy's document: the policies' text, and how a request's parts are named to them (docs/policies.md, "cedar").
 *
 *     "permit(...);" | {"policies": "...", "entities"?: [...], "principal"?, "action"?, "resource"?, "args"?}
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import { quote } from "../json/chars.ts";
import { JsonReader } from "../json/reader.ts";
import { contentHash, type Sha256 } from "./hash.ts";

/** An entity's name: with the id of the request, or a fixed one. */
export interface EntityName {
  readonly type: string;
  /** Null: the request's. */
  readonly id: string | null;
}

export interface CedarSource {
  readonly policies: string;
  /** JSON text of the entities, a list. */
  readonly entities: string;
  readonly principal: EntityName;
  readonly action: EntityName;
  readonly resource: EntityName;
  /** The member of the context that holds the call's arguments. */
  readonly args: string;
}

/** UTF-16 units of the policies' text: what an instance parses without harm. */
const MAX_POLICIES_TEXT = 256 * 1024;

const TYPE = "[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z_][A-Za-z0-9_]*)*";
const ENTITY = new RegExp(`^(${TYPE})(?:::"([^"\\\\\\p{Cc}]{1,512})")?$`, "u");
/** Members that the context has besides. */
const TAKEN: ReadonlySet<string> = new Set(["tool", "run", "approvals"]);

function refuse(message: string, pointer: string): never {
  throw new RunsealError("policy-invalid", message, pointer);
}

/** Reads the source. Throws `RunsealError("policy-invalid")` with a pointer into it. */
export function readCedarSource(json: string): CedarSource {
  const reader = new JsonReader(json);
  let policies: string | null = null;
  let entities = "[]";
  let args = "args";
  const names = {
    principal: entityName("Agent"),
    action: entityName("Action"),
    resource: entityName("Tool"),
  };
  if (reader.peek() === "string") policies = reader.readString();
  else if (reader.peek() !== "object") refuse("the policies' text, or an object that has it", "");
  else {
    reader.enterObject();
    for (let key = reader.nextKey(); key !== null; key = reader.nextKey()) {
      const { pointer } = reader;
      if (key === "entities") {
        if (reader.peek() !== "array") refuse("entities are a list", pointer);
        entities = reader.readCanonical();
        continue;
      }
      if (reader.peek() !== "string") refuse("not a value that is allowed here", pointer);
      if (key === "policies") policies = reader.readString();
      else if (key === "args") {
        args = reader.readString();
        if (!/^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(args) || TAKEN.has(args) || args.startsWith("__"))
          refuse("not a name that the arguments can have", pointer);
      } else if (key === "principal" || key === "action" || key === "resource") {
        names[key] = entityName(reader.readString(), pointer);
      } else refuse("a key that a Cedar policy does not have", pointer);
    }
  }
  if (policies === null) return refuse("a Cedar policy needs its policies", "/policies");
  const pointer = json.startsWith('"') ? "" : "/policies";
  if (policies.length > MAX_POLICIES_TEXT)
    refuse(`the policies have at most ${MAX_POLICIES_TEXT} characters`, pointer);
  return { policies, entities, ...names, args };
}

function entityName(text: string, pointer = ""): EntityName {
  const [, type, id] = ENTITY.exec(text) ?? [];
  if (type === undefined) return refuse('an entity is named Type, or Type::"id"', pointer);
  return { type, id: id ?? null };
}

/** The identity of a source: over everything that enters a decision. */
export function cedarPolicyId(source: CedarSource, crypto: Sha256): string {
  const { policies, entities, principal, action, resource, args } = source;
  const name = ({ type, id }: EntityName) => quote(id === null ? type : `${type}::"${id}"`);
  const text =
    `{"policies":${quote(policies)},"entities":${entities},"args":${quote(args)},` +
    `"principal":${name(principal)},"action":${name(action)},"resource":${name(resource)}}`;
  return `runseal-cedar/sha256:${contentHash(crypto, text)}`;
}
