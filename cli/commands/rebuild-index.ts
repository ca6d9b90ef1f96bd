/**
 * `runseal rebuild-index`: the operator fills D1 again from the logs and R2.
 *
 * @module
 */
import { setTimeout as delay } from "node:timers/promises";
import { ProblemError, RunsealClient } from "../../sdk/client.ts";
import type { Command, Invocation } from "../command.ts";
import { EXIT, SERVER_OPTIONS, text, UsageError } from "../command.ts";

interface Step {
  readonly done: boolean;
  readonly cursor: string | null;
  readonly tenant: string | null;
  readonly logs: number;
  readonly entries: number;
  readonly restored: number;
  readonly refused: number;
}

/** Milliseconds between two attempts of a step, after the client's own. */
const PAUSE_MS = 5000;
/** A step that fails for ten minutes fails. */
const MAX_ATTEMPTS = 120;

function clientOf({ values }: Invocation): RunsealClient {
  const url = text(values, "url") ?? process.env.RUNSEAL_URL ?? "http://127.0.0.1:8787";
  const apiKey = text(values, "token") ?? process.env.RUNSEAL_OPERATOR_TOKEN;
  if (apiKey === undefined)
    throw new UsageError("no operator token: set RUNSEAL_OPERATOR_TOKEN, or give --token");
  return new RunsealClient({ url, apiKey });
}

export const rebuildIndexCommand: Command = {
  name: "rebuild-index",
  usage: "[--tenant ID] [--from CURSOR]",
  summary: "Fill the index (D1) again from the logs and R2: the operator's",
  details:
    "Works in steps, and prints where each ends. A run that was cut off goes on with --from, or from the start: what is there already is left as it is. Exits 1 where R2 holds something else in the place of a policy or tool spec.",
  options: {
    tenant: { type: "string", value: "ID", help: "this tenant only" },
    from: { type: "string", value: "CURSOR", help: "go on where an earlier run ended" },
    token: {
      type: "string",
      value: "TOKEN",
      help: "the operator's token (better: RUNSEAL_OPERATOR_TOKEN, which no process list shows)",
    },
    url: SERVER_OPTIONS.url,
  },
  async run(invocation) {
    const { values, out, note } = invocation;
    const client = clientOf(invocation);
    const tenant = text(values, "tenant");
    let cursor: string | null = text(values, "from") ?? null;
    let [logs, tenants, failures] = [0, 0, 0];
    let [restored, refused] = [0, 0];
    for (;;) {
      let step: Step;
      try {
        const body = JSON.stringify({
          ...(tenant === undefined ? {} : { tenant }),
          ...(cursor === null ? {} : { cursor }),
        });
        const response = await client.request("POST", "/v1/admin/rebuild-index", { body });
        step = (await response.json()) as Step;
        failures = 0;
      } catch (error) {
        failures += 1;
        if (!(error instanceof ProblemError) || error.status !== 503 || failures > MAX_ATTEMPTS) throw error;
        note(`${error.message}; again in ${PAUSE_MS / 1000} s (--from ${cursor ?? "the start"})`);
        await delay(PAUSE_MS);
        continue;
      }
      logs += step.logs;
      restored += step.restored;
      refused += step.refused;
      if (!step.cursor?.endsWith(".begun") && step.tenant !== null) tenants += 1;
      if (step.tenant !== null) {
        const next = step.cursor === null ? "" : `; next --from ${step.cursor}`;
        note(`tenant ${step.tenant}: ${step.logs} logs, ${step.entries} entries${next}`);
      }
      if (step.done) break;
      cursor = step.cursor;
    }
    out(`the index holds ${logs} logs of ${tenants} tenants again`);
    if (restored > 0) out(`${restored} policies and tool specs came back from R2`);
    if (refused === 0) return EXIT.holds;
    out(
      `${refused} objects in R2 are not what their key says, or D1 did not take them: they were left out, see copy-refused in its log`,
    );
    return EXIT.fails;
  },
};
