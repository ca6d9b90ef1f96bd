/**
 * A policy as a request gives it: inline, by name, or as decisions that were made elsewhere (docs/policies.md).
 *
 *     {"rules": {...}} | {"cedar": ..., "policy_id"?} | {"module": "...", "policy_id"?}     each with "engine"? besides
 *     {"name": "...", "version"?: N}
 *     {"decisions": [...], "policy_id"?}
 *
 * Read as text, so that every number in it stays what it is. Nothing is evaluated here.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import { canonicalJson } from "../json/canonical.ts";
import { quote } from "../json/chars.ts";
import type { JsonReader } from "../json/reader.ts";
import { type GivenDecisions, readDecisions } from "./decisions-schema.ts";
import { hashText, type Sha256 } from "./hash.ts";
import { checkPolicyId } from "./policy.ts";

export const ENGINES = ["rules", "cedar", "module"] as const;
export type EngineName = (typeof ENGINES)[number];

/** A policy with its source: what is stored as a version, and what a request may hold inline. */
export interface PolicyDocument {
  readonly engine: EngineName;
  /** Canonical JSON of the engine's member. */
  readonly source: string;
  /** The identity that the sender gave; null where it is computed from the source. */
  readonly policyId: string | null;
  /** Where the source lies in what was sent, for refusals. */
  readonly pointer: string;
}

/** The policy that a request asks for. */
export type AskedPolicy =
  | { readonly kind: "inline"; readonly document: PolicyDocument }
  | {
      readonly kind: "stored";
      readonly name: string;
      /** Null: the latest. */
      readonly version: number | null;
      readonly pointer: string;
    }
  | { readonly kind: "decisions"; readonly decisions: GivenDecisions };

const NAME = /^[A-Za-z0-9._:-]{1,128}$/;

function refuse(message: string, pointer: string): never {
  throw new RunsealError("policy-invalid", message, pointer);
}

/**
 * Reads the value that the reader stands before. Throws `JsonError`, and `RunsealError("policy-invalid")` or
 * `("policy-identity")` with a pointer into the whole text.
 */
export function readPolicy(reader: JsonReader): AskedPolicy {
  const base = reader.pointer;
  if (reader.peek() !== "object") refuse("a policy is an object", base);
  let engine: string | null = null;
  let source: { engine: EngineName; text: string } | null = null;
  let decisions: GivenDecisions | null = null;
  let policyId: string | null = null;
  let name: string | null = null;
  let version: number | null = null;
  reader.enterObject();
  for (let key = reader.nextKey(); key !== null; key = reader.nextKey()) {
    const { pointer } = reader;
    if (isEngine(key)) {
      if (source !== null) refuse("a policy has one source", pointer);
      source = { engine: key, text: reader.readCanonical() };
    } else if (key === "engine") engine = readText(reader);
    else if (key === "policy_id") {
      policyId = readText(reader);
      checkPolicyId(policyId, pointer);
    } else if (key === "name") name = readName(reader);
    else if (key === "version") version = readVersion(reader);
    else if (key === "decisions") decisions = readDecisions(reader);
    else refuse("a key that a policy does not have", pointer);
  }
  const given = [source, decisions, name].filter((each) => each !== null).length;
  if (given !== 1)
    refuse("a policy is one of rules, cedar, module, decisions, or the name of a stored one", base);
  if (version !== null && name === null) refuse("a version is one of a stored policy", `${base}/version`);
  if (engine !== null && engine !== source?.engine) refuse("not the engine of this source", `${base}/engine`);
  if (name !== null) {
    if (policyId !== null) refuse("a stored policy has its own identity", `${base}/policy_id`);
    return { kind: "stored", name, version, pointer: base };
  }
  if (decisions !== null) return { kind: "decisions", decisions: { ...decisions, policyId: policyId ?? "" } };
  if (source === null) return refuse("a policy needs its source", base);
  if (source.engine === "rules" && policyId !== null)
    refuse("the identity of rules is a member of the rules", `${base}/policy_id`);
  const pointer = `${base}/${source.engine}`;
  return { kind: "inline", document: { engine: source.engine, source: source.text, policyId, pointer } };
}

/** The document's canonical JSON: what is stored and hashed. */
export function documentText({ engine, source, policyId }: PolicyDocument): string {
  const id = policyId === null ? "" : `,"policy_id":${quote(policyId)}`;
  return canonicalJson(`{"${engine}":${source}${id}}`);
}

/** What a version of a policy is known by: hex SHA-256 of the document's canonical JSON. */
export function documentHash(crypto: Sha256, document: PolicyDocument): string {
  return hashText(crypto, documentText(document));
}

function isEngine(text: string): text is EngineName {
  return (ENGINES as readonly string[]).includes(text);
}

function readText(reader: JsonReader): string {
  if (reader.peek() !== "string") refuse("a string", reader.pointer);
  return reader.readString();
}

function readName(reader: JsonReader): string {
  const { pointer } = reader;
  const name = readText(reader);
  if (!NAME.test(name)) refuse("a policy's name has 1 to 128 of A-Z a-z 0-9 . _ : -", pointer);
  return name;
}

function readVersion(reader: JsonReader): number {
  const { pointer } = reader;
  const literal = reader.peek() === "number" ? reader.readNumber() : refuse("a version is a number", pointer);
  if (!/^[1-9][0-9]{0,8}$/.test(literal)) refuse("a version is a whole number from 1 on", pointer);
  return Number(literal);
}
