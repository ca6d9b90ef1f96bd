/**
 * `runseal policy`: policies as versioned resources.
 *
 * @module
 */
import type { Command, ExitCode, Invocation } from "../command.ts";
import {
  clientOf,
  EXIT,
  JSON_OPTION,
  positive,
  required,
  SERVER_OPTIONS,
  text,
  UsageError,
} from "../command.ts";
import { documentText } from "../policy-file.ts";

interface Version {
  readonly name: string;
  readonly version: number;
  readonly engine: string;
  readonly policy_id: string;
  readonly created_at: string;
}

interface Diff {
  readonly from: Version;
  readonly to: Version;
  readonly same: boolean;
  readonly identity: string;
  readonly changes:
    | readonly {
        readonly what: string;
        readonly name?: string;
        readonly server?: string;
        readonly from?: unknown;
        readonly to?: unknown;
      }[]
    | null;
}

function line({ name, version, engine, policy_id: id, created_at: at }: Version): string {
  return `${name}@${version}  ${engine}  ${id}  ${at}`;
}

function pathOf(name: string, rest = ""): string {
  return `/v1/policies/${encodeURIComponent(name)}${rest}`;
}

async function put(invocation: Invocation, name: string): Promise<ExitCode> {
  const { values, out, json } = invocation;
  const id = text(values, "policy-id");
  const body = await documentText(
    required(values, "policy"),
    id === undefined ? "" : `,"policy_id":${JSON.stringify(id)}`,
  );
  const version = positive(values, "version");
  const query = version === undefined ? "" : `?version=${version}`;
  const answer = await clientOf(invocation).request("PUT", pathOf(name, query), { body });
  const stored = (await answer.json()) as Version;
  out(json ? JSON.stringify(stored) : line(stored));
  invocation.note(answer.status === 201 ? "stored as a new version" : "this content is stored already");
  return EXIT.holds;
}

async function get(invocation: Invocation, name: string): Promise<ExitCode> {
  const version = positive(invocation.values, "version");
  const query = version === undefined ? "" : `?version=${version}`;
  const answer = await clientOf(invocation).request("GET", pathOf(name, query));
  // As it came: a number of the policy keeps its digits.
  invocation.out(await answer.text());
  return EXIT.holds;
}

/** All pages of a list, one version a line. */
async function list(invocation: Invocation, path: string, member: string): Promise<ExitCode> {
  const client = clientOf(invocation);
  const all: Version[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const query: string = cursor === "" ? "" : `?cursor=${cursor}`;
    const page = await client.json<Record<string, unknown>>("GET", path + query);
    all.push(...(page[member] as Version[]));
    cursor = page.next_cursor as string | null;
  }
  if (invocation.json) invocation.out(JSON.stringify(all));
  else for (const each of all) invocation.out(line(each));
  return EXIT.holds;
}

/** Exit 1 where the two versions differ, as `diff` does. */
async function diff(invocation: Invocation, name: string): Promise<ExitCode> {
  const { values, out, json } = invocation;
  const from = positive(values, "from");
  if (from === undefined) throw new UsageError("--from is needed");
  const to = positive(values, "to");
  const query = `?from=${from}${to === undefined ? "" : `&to=${to}`}`;
  const answer = await clientOf(invocation).json<Diff>("GET", pathOf(name, `/diff${query}`));
  if (json) out(JSON.stringify(answer));
  else {
    out(`${line(answer.from)}\n${line(answer.to)}`);
    out(answer.same ? "the same content" : `another content; identity ${answer.identity}`);
    if (answer.changes === null) out("rules alone are compared in detail");
    for (const { what, name: of, server, from: before, to: after } of answer.changes ?? []) {
      const where = [what, server, of].filter((part) => part !== undefined).join(" ");
      out(`${where}: ${JSON.stringify(before) ?? "none"} -> ${JSON.stringify(after) ?? "none"}`);
    }
  }
  return answer.same ? EXIT.holds : EXIT.fails;
}

export const policyCommand: Command = {
  name: "policy",
  usage: "put NAME --policy FILE | get NAME | list | versions NAME | diff NAME --from N [--to N]",
  summary: "Store, read and compare versions of policies",
  details:
    "The same content is stored once: putting it again answers the version that has it. diff exits 1 where they differ.",
  options: {
    policy: {
      type: "string",
      value: "FILE",
      help: "rules or a policy document (JSON), .cedar, or a module (.js, .mjs)",
    },
    "policy-id": { type: "string", value: "ID", help: "the policy's identity, with .cedar or a module" },
    version: { type: "string", value: "N", help: "put: become this version or nothing; get: this version" },
    from: { type: "string", value: "N", help: "diff: the one version" },
    to: { type: "string", value: "N", help: "diff: the other one, the latest by default" },
    ...SERVER_OPTIONS,
    ...JSON_OPTION,
  },
  async run(invocation) {
    const [action, name, ...more] = invocation.positionals;
    if (action === "list" && name === undefined) return list(invocation, "/v1/policies", "policies");
    if (name === undefined || more.length > 0) throw new UsageError("see runseal help policy");
    switch (action) {
      case "put":
        return put(invocation, name);
      case "get":
        return get(invocation, name);
      case "versions":
        return list(invocation, pathOf(name, "/versions"), "versions");
      case "diff":
        return diff(invocation, name);
      default:
        throw new UsageError("see runseal help policy");
    }
  },
};
