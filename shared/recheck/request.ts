/**
 * The body of a re-check request: which policy (policy-document.ts), and which specs.
 *
 *     {"policy": {"rules": {...}}, "specs"?: "recorded" | "current", "tools"?: [spec...]}
 *
 * It is read as text, so that the numbers of a policy's fixed values stay what they are.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import { JsonReader } from "../json/reader.ts";
import { type AskedPolicy, readPolicy } from "./policy-document.ts";
import type { SpecSource } from "./report.ts";
import { currentTools as toolsByName } from "./spec.ts";

export interface RecheckRequest {
  readonly policy: AskedPolicy;
  readonly specSource: SpecSource;
  /** JSON texts of the tools as they are now: there with `specSource: "current"`, and only then. */
  readonly currentTools?: readonly string[];
}

function refuse(message: string, pointer: string): never {
  throw new RunsealError("recheck-request", message, pointer);
}

/**
 * Reads the body. Throws `JsonError` for text that is no strict JSON, `RunsealError("recheck-request")` for a body of
 * another shape, `RunsealError("current-tool")` for tools that can't be used, and what `readPolicy` throws, with
 * pointers into the body. The policy is not opened yet.
 */
export function readRecheckRequest(text: string): RecheckRequest {
  const reader = new JsonReader(text);
  if (reader.peek() !== "object") refuse("the body is not an object", "");
  let policy: AskedPolicy | null = null;
  let specSource: SpecSource = "recorded";
  let currentTools: string[] | null = null;
  reader.enterObject();
  for (let key = reader.nextKey(); key !== null; key = reader.nextKey()) {
    if (key === "policy") policy = readPolicy(reader);
    else if (key === "specs") specSource = readSource(reader);
    else if (key === "tools") currentTools = readTools(reader);
    else refuse("a key that a re-check does not have", reader.pointer);
  }
  reader.finish();
  if (policy === null) return refuse("a re-check needs a policy", "/policy");
  if (specSource === "current" && currentTools === null)
    refuse("current specs need the current tools", "/tools");
  if (specSource === "recorded" && currentTools !== null)
    refuse("tools are read with current specs only", "/tools");
  within("/tools", () => toolsByName(currentTools ?? []));
  return currentTools === null ? { policy, specSource } : { policy, specSource, currentTools };
}

function readSource(reader: JsonReader): SpecSource {
  const source = reader.readCanonical();
  if (source !== '"recorded"' && source !== '"current"')
    refuse("not one of recorded, current", reader.pointer);
  return source === '"recorded"' ? "recorded" : "current";
}

function readTools(reader: JsonReader): string[] {
  if (reader.peek() !== "array") refuse("tools are an array of specs", reader.pointer);
  const tools: string[] = [];
  reader.enterArray();
  while (reader.nextElement()) tools.push(reader.readCanonical());
  return tools;
}

/** Runs it with the pointers of its refusals put below `base`. */
export function within<T>(base: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    throw new RunsealError(error.code, error.message, base + (error.pointer ?? ""));
  }
}
