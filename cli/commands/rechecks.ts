/**
 * `runseal rechecks`: re-check jobs over many runs (docs/recheck.md, "Jobs").
 *
 * @module
 */
import type { RunsealClient } from "../../sdk/client.ts";
import type { RecheckFormat } from "../../shared/recheck/format-report.ts";
import type { GateName } from "../../shared/recheck/report.ts";
import { formatStored, judgeStored, readStoredReport } from "../../shared/recheck/stored-report.ts";
import type { Command, ExitCode, Invocation } from "../command.ts";
import { clientOf, EXIT, JSON_OPTION, positive, SERVER_OPTIONS, text, UsageError } from "../command.ts";
import { fileText } from "../files.ts";
import { JOB_POLICY_OPTIONS, policyText, RECHECK_OPTIONS } from "../policy-file.ts";
import { FORMAT_OPTION, formatOf } from "../report-format.ts";

/** Seconds that one request waits for a job. */
const WAIT = 20;

/** What is needed of a job's answer. */
interface Job {
  readonly id: string;
  readonly status: string;
  readonly report_hash: string | null;
  readonly progress: {
    readonly runs: { readonly done: number; readonly total: number | null };
    readonly evaluations: number;
  };
  readonly summary: { readonly differences: number; readonly new_allows: { readonly total: number } };
}

export const rechecksCommand: Command = {
  name: "rechecks",
  usage: "[start | wait ID | cancel ID | list]",
  summary: "Re-check many runs under another policy, as a job: exit 1 if the gate fails",
  details:
    "start (the default) needs a policy, and --all or something that selects. It waits for the job's end, prints its\n" +
    "report and applies the gate; with --no-wait it prints the job's id. wait does the same for a job that is there.\n" +
    "A job that did not come to its end passes no gate, and neither does one that re-checked nothing.",
  options: {
    all: { type: "boolean", help: "every run of every principal that the key may use" },
    principal: {
      type: "string",
      short: "p",
      value: "NAMES",
      help: "runs of these principals (commas between)",
    },
    since: { type: "string", value: "TIME", help: "runs that began then or later (RFC 3339)" },
    until: { type: "string", value: "TIME", help: "runs that began before" },
    newest: { type: "string", value: "N", help: "the newest runs only" },
    tool: { type: "string", value: "NAME", help: "evaluations of this tool" },
    "recorded-policy": {
      type: "string",
      value: "ID",
      help: "evaluations under this recorded policy identity",
    },
    ...JOB_POLICY_OPTIONS,
    ...RECHECK_OPTIONS,
    "max-runs": { type: "string", value: "N", help: "end as budget-exhausted after so many runs" },
    "max-evaluations": { type: "string", value: "N", help: "after so many evaluations" },
    "max-seconds": { type: "string", value: "N", help: "after so many seconds of work" },
    "idempotency-key": { type: "string", value: "KEY", help: "the same key and request again: the same job" },
    "no-wait": { type: "boolean", help: "print the job's id, and leave it at work" },
    ...FORMAT_OPTION,
    ...SERVER_OPTIONS,
    ...JSON_OPTION,
  },
  async run(invocation) {
    const [action = "start", id, ...more] = invocation.positionals;
    const takesId = action === "wait" || action === "cancel";
    if (more.length > 0 || (id !== undefined) !== takesId) {
      throw new UsageError("rechecks start, rechecks wait ID, rechecks cancel ID, or rechecks list");
    }
    const asked = { gate: gateOf(invocation), format: formatOf(invocation) };
    const client = clientOf(invocation);
    switch (action) {
      case "start":
        return start(invocation, client, asked);
      case "wait":
        return finish(invocation, client, asked, await jobAt(client, id ?? "", 0));
      case "cancel":
        return cancel(invocation, client, id ?? "");
      case "list":
        return list(invocation, client);
      default:
        throw new UsageError(`there is no action ${action}: see runseal help rechecks`);
    }
  },
};

/** What is expected of the report, and the form in which it is printed. */
interface Asked {
  readonly gate: GateName;
  readonly format: RecheckFormat;
}

function gateOf({ values }: Invocation): GateName {
  const gate = text(values, "gate") ?? "proxy";
  if (gate !== "proxy" && gate !== "strict") throw new UsageError("--gate is proxy or strict");
  return gate;
}

async function start(invocation: Invocation, client: RunsealClient, asked: Asked): Promise<ExitCode> {
  const { values, out } = invocation;
  const policy = await policyText(values, JOB_POLICY_OPTIONS);
  const toolsFile = text(values, "tools");
  const tools = toolsFile === undefined ? "" : `,"specs":"current","tools":${await fileText(toolsFile)}`;
  const budget = {
    ...limit("runs", positive(values, "max-runs")),
    ...limit("evaluations", positive(values, "max-evaluations")),
    ...limit("seconds", positive(values, "max-seconds")),
  };
  // Joined as text: a number of the policy keeps its digits.
  const body = `{"policy":${policy}${tools},"selection":${JSON.stringify(selectionOf(invocation))},"budget":${JSON.stringify(budget)}}`;
  // A retry after a lost answer must not start another job.
  const key = text(values, "idempotency-key") ?? crypto.randomUUID();
  const response = await client.request("POST", "/v1/rechecks", {
    body,
    headers: { "idempotency-key": JSON.stringify(key) },
  });
  const job = (await response.json()) as Job;
  if (values["no-wait"] === true) {
    out(invocation.json ? JSON.stringify(job) : job.id);
    return EXIT.holds;
  }
  invocation.note(`re-check ${job.id}`);
  return finish(invocation, client, asked, job);
}

function limit(name: string, value: number | undefined): Record<string, number> {
  return value === undefined ? {} : { [name]: value };
}

/** What is selected. Everything has to be said: a forgotten option must not select it. */
function selectionOf({ values }: Invocation): Record<string, unknown> {
  const principals = text(values, "principal")
    ?.split(",")
    .map((name) => name.trim());
  const newest = positive(values, "newest");
  const members: [string, unknown][] = [
    ["principals", principals],
    ["since", text(values, "since")],
    ["until", text(values, "until")],
    ["newest", newest],
    ["tool", text(values, "tool")],
    ["policy_id", text(values, "recorded-policy")],
  ];
  const selection = Object.fromEntries(members.filter(([, value]) => value !== undefined));
  if (Object.keys(selection).length === 0 && values.all !== true) {
    throw new UsageError("nothing is selected: give --all, or --principal, --newest and the like");
  }
  if (principals !== undefined && values.all === true) throw new UsageError("--all or --principal, not both");
  return selection;
}

async function jobAt(client: RunsealClient, id: string, wait: number): Promise<Job> {
  return client.json("GET", `/v1/rechecks/${encodeURIComponent(id)}?wait=${wait}`);
}

/** Waits for the job's end, prints its report, and applies the gate. */
async function finish(
  invocation: Invocation,
  client: RunsealClient,
  { gate, format }: Asked,
  job: Job,
): Promise<ExitCode> {
  let last = job;
  while (last.report_hash === null) {
    last = await jobAt(client, job.id, WAIT);
    const { runs, evaluations } = last.progress;
    const { differences, new_allows: allows } = last.summary;
    invocation.note(
      `${last.status}: ${runs.done} of ${runs.total ?? "?"} runs, ${evaluations} evaluations, ` +
        `${differences} differ, ${allows.total} newly allowed`,
    );
  }
  const answered = await (await client.request("GET", `/v1/rechecks/${job.id}/report`)).text();
  const stored = readStoredReport(answered);
  const { passed = false, failures = [] } = judgeStored(stored, gate) ?? {};
  invocation.out(format === "json" ? answered : formatStored(format, stored, gate).trimEnd());
  for (const { message } of failures) invocation.note(`FAILED: ${message}`);
  if (stored.of === "job" && stored.report.status === "failed") return EXIT.usage;
  return passed ? EXIT.holds : EXIT.fails;
}

async function cancel(invocation: Invocation, client: RunsealClient, id: string): Promise<ExitCode> {
  const job = await client.json<Job>("POST", `/v1/rechecks/${encodeURIComponent(id)}/cancel?wait=${WAIT}`);
  invocation.out(invocation.json ? JSON.stringify(job) : `${job.id} ${job.status}`);
  return EXIT.holds;
}

interface Listed {
  readonly id: string;
  readonly status: string;
  readonly created_at: string;
  readonly policy: { readonly policy_id: string };
}

async function list(invocation: Invocation, client: RunsealClient): Promise<ExitCode> {
  let cursor = "";
  do {
    const page = await client.json<{ rechecks: Listed[]; next_cursor: string | null }>(
      "GET",
      `/v1/rechecks?limit=200${cursor}`,
    );
    for (const job of page.rechecks) {
      const line = `${job.id} ${job.created_at} ${job.status} ${job.policy.policy_id}`;
      invocation.out(invocation.json ? JSON.stringify(job) : line);
    }
    cursor = page.next_cursor === null ? "" : `&cursor=${page.next_cursor}`;
  } while (cursor !== "");
  return EXIT.holds;
}
