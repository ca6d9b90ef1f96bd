/**
 * What becomes of each entry of an append, as the answer says it.
 *
 * @module
 */
import type { ItemOutcome } from "../../durable-objects/principal-log/types.ts";
import type { ProblemCode } from "../../shared/api/problems.ts";
import { isProblemCode, PROBLEMS, problemType } from "../../shared/api/problems.ts";
import type { Caller } from "../http/auth.ts";
import { hasScope } from "../http/auth.ts";
import { Problem } from "../http/problem.ts";

/** What a batch's item becomes in the answer. */
export interface Item {
  readonly index: number;
  readonly id?: string;
  readonly seq?: number;
  readonly hash?: string;
  readonly status?: "stored" | "seen";
  readonly proof?: string;
  readonly checkpoint?: string;
  readonly path?: readonly string[];
  readonly error?: Record<string, unknown>;
}

function itemError(
  code: ProblemCode,
  options: { detail?: string; pointer?: string; differs?: readonly string[] } = {},
) {
  const { title, status } = PROBLEMS[code];
  return { type: problemType(code), title, status, ...options };
}

/** An entry that can't be one. */
export function refusedItem(
  index: number,
  id: string | null,
  problem: { code: string; pointer: string; message: string },
): Item {
  const code: ProblemCode = isProblemCode(problem.code) ? problem.code : "invalid-field";
  return {
    index,
    ...(id === null ? {} : { id }),
    error: itemError(code, { detail: problem.message, pointer: problem.pointer }),
  };
}

/** An entry as the log decided on it. */
export function outcomeItem(index: number, id: string, outcome: ItemOutcome, caller: Caller): Item {
  switch (outcome.status) {
    case "stored":
    case "seen":
      return { index, id, seq: outcome.seq, hash: outcome.hash, status: outcome.status };
    case "conflict":
      // What differs tells of the stored entry: only a key that may read learns it.
      return {
        index,
        id,
        error: hasScope(caller, "read")
          ? itemError("conflict", { pointer: outcome.differs[0] ?? "/id", differs: outcome.differs })
          : itemError("conflict"),
      };
    case "erased":
      return { index, id, seq: outcome.seq, hash: outcome.hash, error: itemError("erased") };
    case "not-stored":
      return { index, id, error: itemError("not-stored") };
  }
}

export function sorted(results: readonly Item[]): Item[] {
  return [...results].sort((a, b) => a.index - b.index);
}

/** Status of a request of which something is stored. */
export function statusOf(items: readonly Item[]): number {
  if (items.every((item) => item.status === "stored")) return 201;
  return items.every((item) => item.status === "seen") ? 200 : 207;
}

/** The problem of a request of which nothing could be stored. */
export function refuseAll(results: readonly Item[], single: boolean, atomic: boolean): Problem {
  const [first] = results;
  const error = first?.error;
  if (single && error !== undefined) {
    const code = String(error.type).slice(problemType("internal").length - "internal".length);
    const { type: _type, title: _title, status: _status, ...members } = error;
    return new Problem(isProblemCode(code) ? code : "entries-refused", { members: { ...members, results } });
  }
  const notStored = problemType("not-stored");
  const firstRefused = results.find((item) => item.error !== undefined && item.error.type !== notStored);
  const pointer = `/${firstRefused?.index ?? 0}${String(firstRefused?.error?.pointer ?? "")}`;
  return new Problem(atomic ? "batch-refused" : "entries-refused", { pointer, members: { results } });
}
