/**
 * Decisions that a client's own policy made over the exported evaluations, as a re-check is given them
 * (docs/policies.md, "decisions"):
 *
 *     [{"seq"?: N, "hash"?: HEX, "decision": {outcome, reason?, kind?, capability?, presentation?}}
 *      | {"seq"?: N, "hash"?: HEX, "error": "why the policy failed"} ...]
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import type { JsonReader } from "../json/reader.ts";
import { decodeDecision } from "./decode.ts";
import type { Decision } from "./model.ts";
import { OUTCOMES } from "./model.ts";
import type { PolicyAnswer } from "./policy.ts";

/** One of them: the evaluation that it is for, by place in the log, by leaf hash, or both. */
export interface GivenDecision {
  readonly seq: number | null;
  /** Hex. */
  readonly hash: string | null;
  readonly answer: PolicyAnswer;
}

export interface GivenDecisions {
  readonly list: readonly GivenDecision[];
  /** "" where the sender gave no identity. */
  readonly policyId: string;
  /** Where the list lies in what was sent. */
  readonly pointer: string;
}

const MEMBERS: ReadonlySet<string> = new Set(["outcome", "reason", "kind", "capability", "presentation"]);

function refuse(message: string, pointer: string): never {
  throw new RunsealError("policy-invalid", message, pointer);
}

/** Reads the list that the reader stands before. Throws `JsonError` and `RunsealError("policy-invalid")`. */
export function readDecisions(reader: JsonReader): GivenDecisions {
  const { pointer } = reader;
  if (reader.peek() !== "array") refuse("decisions are a list", pointer);
  const list: GivenDecision[] = [];
  const seqs = new Set<number>();
  const hashes = new Set<string>();
  reader.enterArray();
  while (reader.nextElement()) {
    const at = reader.pointer;
    const given = readDecision(reader, at);
    if ((given.seq !== null && seqs.has(given.seq)) || (given.hash !== null && hashes.has(given.hash)))
      refuse("the evaluation has a decision already", at);
    if (given.seq !== null) seqs.add(given.seq);
    if (given.hash !== null) hashes.add(given.hash);
    list.push(given);
  }
  if (list.length === 0) refuse("no decision is given: that would re-check nothing", pointer);
  return { list, policyId: "", pointer };
}

function readDecision(reader: JsonReader, at: string): GivenDecision {
  if (reader.peek() !== "object") refuse("a decision is an object", at);
  let seq: number | null = null;
  let hash: string | null = null;
  let answer: PolicyAnswer | null = null;
  reader.enterObject();
  for (let key = reader.nextKey(); key !== null; key = reader.nextKey()) {
    const { pointer } = reader;
    if (key === "seq") {
      const literal = reader.peek() === "number" ? reader.readNumber() : "";
      if (!/^[1-9][0-9]{0,14}$/.test(literal)) refuse("a seq is a whole number from 1 on", pointer);
      seq = Number(literal);
    } else if (key === "hash") {
      hash = reader.peek() === "string" ? reader.readString() : "";
      if (!/^[0-9a-f]{64}$/.test(hash)) refuse("a hash is 32 bytes of lower-case hex", pointer);
    } else if (key === "decision" || key === "error") {
      if (answer !== null) refuse("a decision or an error, not both", pointer);
      answer = key === "error" ? readError(reader) : { ok: true, decision: readOutcome(reader) };
    } else refuse("a key that a decision does not have", pointer);
  }
  if (seq === null && hash === null) refuse("it names no evaluation: seq, hash, or both", at);
  return { seq, hash, answer: answer ?? refuse("it has neither a decision nor an error", at) };
}

function readError(reader: JsonReader): PolicyAnswer {
  if (reader.peek() !== "string") refuse("an error is a string", reader.pointer);
  return { ok: false, error: reader.readString() };
}

/** A decision, strictly: no unknown key, and an outcome that there is. Throws `RunsealError("policy-invalid")`. */
export function readOutcome(reader: JsonReader): Decision {
  const { pointer } = reader;
  if (reader.peek() !== "object") refuse("a decision is an object", pointer);
  const mark = reader.mark();
  reader.enterObject();
  for (let key = reader.nextKey(); key !== null; key = reader.nextKey()) {
    if (!MEMBERS.has(key)) refuse("a key that a decision does not have", reader.pointer);
    reader.skipValue();
  }
  reader.rewind(mark);
  const decoded = decodeDecision(reader.readCanonical());
  if (!decoded.ok) return refuse(decoded.why, pointer);
  if (!(OUTCOMES as readonly string[]).includes(decoded.value.outcome))
    refuse(`not one of ${OUTCOMES.join(", ")}`, `${pointer}/outcome`);
  return decoded.value;
}
