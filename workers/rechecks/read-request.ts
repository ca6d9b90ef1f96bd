/**
 * The body of `POST /v1/rechecks`: a re-check's body with a selection and a budget besides. The policy is read as text, so
 * that its numbers stay what they are.
 *
 * @module
 */
import type { z } from "zod";
import { BudgetIn, SelectionIn } from "../../shared/api/rechecks.ts";
import { RunsealError } from "../../shared/errors.ts";
import { quote } from "../../shared/json/chars.ts";
import { JsonReader } from "../../shared/json/reader.ts";
import { decodeUtf8 } from "../../shared/json/utf8.ts";
import type { RecheckRequest } from "../../shared/recheck/request.ts";
import { readRecheckRequest } from "../../shared/recheck/request.ts";
import { parseTime } from "../../shared/time.ts";
import { Problem } from "../http/problem.ts";
import { policyProblem } from "../policies/engine.ts";

export interface JobBody {
  readonly asked: RecheckRequest;
  readonly selection: z.infer<typeof SelectionIn>;
  /** Nanoseconds as decimal text. */
  readonly since: string | null;
  readonly until: string | null;
  readonly budget: z.infer<typeof BudgetIn>;
}

/** Reads the body's bytes. Throws 400 and 422 problems with pointers into it. */
export function readJobBody(bytes: Uint8Array): JobBody {
  const { text, ok } = decodeUtf8(bytes);
  if (!ok) throw new Problem("json-syntax", { pointer: "", detail: "the body is not UTF-8" });
  const members: string[] = [];
  let selection: unknown;
  let budget: unknown = {};
  try {
    const reader = new JsonReader(text);
    if (reader.peek() !== "object") {
      throw new Problem("invalid-request", { pointer: "", detail: "body: expected an object" });
    }
    reader.enterObject();
    for (let key = reader.nextKey(); key !== null; key = reader.nextKey()) {
      const value = reader.readCanonical();
      if (key === "selection") selection = JSON.parse(value);
      else if (key === "budget") budget = JSON.parse(value);
      else members.push(`${quote(key)}:${value}`);
    }
    reader.finish();
    const asked = readRecheckRequest(`{${members.join(",")}}`);
    const checked = checkPart(SelectionIn, selection, "/selection");
    return {
      asked,
      selection: checked,
      since: timeOf(checked.since, "/selection/since"),
      until: timeOf(checked.until, "/selection/until"),
      budget: checkPart(BudgetIn, budget, "/budget"),
    };
  } catch (error) {
    throw policyProblem(error);
  }
}

function checkPart<T extends z.ZodType>(schema: T, value: unknown, base: string): z.infer<T> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const path: PropertyKey[] = [...(issue?.path ?? [])];
  if (issue?.code === "unrecognized_keys" && issue.keys[0] !== undefined) path.push(issue.keys[0]);
  const pointer = path.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
  throw new Problem("invalid-request", {
    pointer: base + pointer,
    detail: `body: ${issue?.message ?? "not as the contract demands"}`,
  });
}

function timeOf(text: string | undefined, pointer: string): string | null {
  if (text === undefined) return null;
  try {
    return parseTime(text).toString();
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    throw new Problem("invalid-request", { pointer, detail: "a time is RFC 3339" });
  }
}
