/**
 * The tools that a run may use, as its authorization snapshot lists them.
 *
 * @module
 */
import { isBlank, PythonFailure, type PyValue, pyStr, pyTruth, pyTypeName } from "./python-value.ts";

/** A tool of the snapshot, and what its entry lacks. */
export interface IncompleteTool {
  readonly tool_name: string;
  readonly missing: readonly string[];
}

export interface AuthorizedTools {
  readonly names: ReadonlySet<string>;
  readonly incomplete: readonly IncompleteTool[];
  /** The snapshot exposes no tools at all: an object in place of the list is ignored, but is something. */
  readonly none: boolean;
}

/** Throws `PythonFailure` where `resources` is there and no object. */
export function authorizedTools(snapshot: PyValue): AuthorizedTools {
  const tools = snapshot instanceof Map ? toolsOf(snapshot) : [];
  const names = new Set<string>();
  const incomplete: IncompleteTool[] = [];
  for (const tool of Array.isArray(tools) ? tools : []) {
    if (!(tool instanceof Map)) {
      incomplete.push({ tool_name: "", missing: ["tool object"] });
      continue;
    }
    const text = (key: string): string => pyStr(tool.get(key) ?? (tool.has(key) ? null : ""));
    const name = text("tool_name");
    const missing = [
      ...(name === "" ? ["tool_name"] : []),
      ...(isBlank(text("description")) ? ["description"] : []),
      ...(tool.get("parameters") instanceof Map ? [] : ["parameters"]),
      ...(["source", "tool_type", "source_id"].some((key) => pyTruth(tool.get(key))) ? [] : ["owner"]),
    ];
    if (missing.length > 0) incomplete.push({ tool_name: name, missing });
    if (name !== "") names.add(name);
  }
  return { names, incomplete, none: !pyTruth(tools) };
}

function toolsOf(snapshot: ReadonlyMap<string, PyValue>): PyValue {
  const resources = snapshot.get("resources");
  if (resources === undefined) return [];
  if (!(resources instanceof Map))
    throw new PythonFailure(`'${pyTypeName(resources)}' object has no attribute 'get'`);
  const tools = resources.get("tools");
  return tools === undefined ? [] : tools;
}
