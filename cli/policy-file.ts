/**
 * The policy that a command's options name, as the JSON text of a request's `policy` (docs/policies.md).
 *
 * @module
 */
import { extname } from "node:path";
import { RunsealError } from "../shared/errors.ts";
import { JsonReader } from "../shared/json/reader.ts";
import { ENGINES } from "../shared/recheck/policy-document.ts";
import type { OptionSpec, Values } from "./command.ts";
import { text, UsageError } from "./command.ts";
import { fileLines, fileText } from "./files.ts";

/** The policy of a job over many runs. Decisions are not among them: they answer for one run. */
export const JOB_POLICY_OPTIONS = {
  policy: {
    type: "string",
    value: "FILE",
    help: "the policy: rules or a policy document (JSON), .cedar, or a module (.js, .mjs)",
  },
  stored: { type: "string", value: "NAME[@N]", help: "a stored policy: its latest version, or version N" },
  "policy-id": { type: "string", value: "ID", help: "the policy's identity, where its text gives none" },
} as const satisfies Record<string, OptionSpec>;

/** The policy of one run's re-check. */
export const POLICY_OPTIONS = {
  ...JOB_POLICY_OPTIONS,
  decisions: {
    type: "string",
    value: "FILE",
    help: "decisions that your own policy made over `runseal evaluations` (a JSON list, or one a line)",
  },
} as const satisfies Record<string, OptionSpec>;

/** What any re-check takes besides. */
export const RECHECK_OPTIONS = {
  tools: {
    type: "string",
    value: "FILE",
    help: "the tools as they are now (JSON array): check under current specs",
  },
  gate: {
    type: "string",
    value: "NAME",
    help: "proxy (the default): all same, at least one re-checked; strict: and none left out",
  },
} as const satisfies Record<string, OptionSpec>;

/**
 * JSON text of the policy that one of the command's options names. Texts are joined, never parsed and written again, so that every number keeps its digits.
 * Throws `UsageError` where not exactly one is named, or a file can't be read.
 */
export async function policyText(
  values: Values,
  options: Readonly<Record<string, OptionSpec>>,
): Promise<string> {
  const file = text(values, "policy");
  const stored = text(values, "stored");
  const decisions = text(values, "decisions");
  const id = text(values, "policy-id");
  if ([file, stored, decisions].filter((each) => each !== undefined).length !== 1)
    throw new UsageError(
      "decisions" in options
        ? "name one policy: --policy, --stored or --decisions"
        : "name one policy: --policy or --stored",
    );
  const idText = id === undefined ? "" : `,"policy_id":${JSON.stringify(id)}`;
  if (decisions !== undefined) return `{"decisions":${await decisionsText(decisions)}${idText}}`;
  if (file !== undefined) return await documentText(file, idText);
  if (id !== undefined)
    throw new UsageError("a stored policy has its own identity: --policy-id has no place");
  const [, name, version] = /^([A-Za-z0-9._:-]{1,128})(?:@([1-9][0-9]{0,8}))?$/.exec(stored ?? "") ?? [];
  if (name === undefined) throw new UsageError("--stored is NAME or NAME@VERSION");
  return JSON.stringify({ name, ...(version === undefined ? {} : { version: Number(version) }) });
}

/** A file as a policy document. */
export async function documentText(file: string, idText = ""): Promise<string> {
  const content = await fileText(file);
  const extension = extname(file);
  if (extension === ".cedar") return `{"cedar":${JSON.stringify(content)}${idText}}`;
  if (extension === ".js" || extension === ".mjs") return `{"module":${JSON.stringify(content)}${idText}}`;
  if (idText !== "")
    throw new UsageError("the identity is a member of the JSON file: --policy-id has no place");
  return isDocument(file, content) ? content : `{"rules":${content}}`;
}

/** Whether the JSON is a policy document already; rules alone are not. */
function isDocument(file: string, content: string): boolean {
  try {
    const reader = new JsonReader(content);
    if (reader.peek() !== "object") return false;
    reader.enterObject();
    for (let key = reader.nextKey(); key !== null; key = reader.nextKey()) {
      if ((ENGINES as readonly string[]).includes(key)) return true;
      reader.skipValue();
    }
    return false;
  } catch (error) {
    if (error instanceof RunsealError) throw new UsageError(`${file}: it is not JSON`);
    throw error;
  }
}

async function decisionsText(file: string): Promise<string> {
  const lines: string[] = [];
  for await (const line of fileLines(file)) if (line.trim() !== "") lines.push(line);
  const list = lines[0]?.trimStart().startsWith("[") === true;
  return list ? lines.join("\n") : `[${lines.join(",")}]`;
}
