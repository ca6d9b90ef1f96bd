/**
 * `runseal anchors`: say that a head is kept elsewhere, and see which are (docs/anchoring.md).
 *
 * @module
 */
import type { AnchoredLog } from "../../sdk/anchors.ts";
import { Anchors } from "../../sdk/anchors.ts";
import { shown } from "../../shared/recheck/text.ts";
import type { Command, ExitCode, Invocation } from "../command.ts";
import {
  clientOf,
  EXIT,
  JSON_OPTION,
  PRINCIPAL_OPTION,
  required,
  SERVER_OPTIONS,
  text,
  UsageError,
} from "../command.ts";
import { fileText } from "../files.ts";

async function add(invocation: Invocation, file: string): Promise<ExitCode> {
  const { values, out, json } = invocation;
  const principal = text(values, "principal");
  if ((principal === undefined) === (values["tenant-log"] !== true)) {
    throw new UsageError("whose head is it: --principal NAME, or --tenant-log");
  }
  const where = required(values, "where");
  const receiptFile = text(values, "receipt");
  const checkpoint = await fileText(file);
  const receipt = receiptFile === undefined ? undefined : (await fileText(receiptFile)).trimEnd();
  if (receipt === "") throw new UsageError("the file of --receipt is empty");
  const outcome = await new Anchors(clientOf(invocation)).add({ principal, checkpoint, where, receipt });
  const isRejected = outcome.result === "rejected";
  if (json) out(JSON.stringify(outcome));
  else if (isRejected) out(`rejected (${outcome.reason}): ${outcome.detail}`);
  else out(`${outcome.result}: a head of ${outcome.size} entries`);
  return isRejected ? EXIT.fails : EXIT.holds;
}

/** Entries that an anchor may lag behind; null where nothing was said. */
function maxLag(invocation: Invocation): number | null {
  const value = text(invocation.values, "max-lag");
  if (value === undefined) return null;
  if (!/^[0-9]{1,15}$/.test(value)) throw new UsageError("--max-lag takes a whole number");
  return Number(value);
}

async function list(invocation: Invocation): Promise<ExitCode> {
  const { values, out, note, json } = invocation;
  const limit = maxLag(invocation);
  const principal = text(values, "principal");
  const ownLog = values["tenant-log"] === true;
  if (principal !== undefined && ownLog) throw new UsageError("--principal or --tenant-log, not both");
  const isAsked = (log: AnchoredLog) =>
    principal !== undefined ? log.principal === principal : !ownLog || log.principal === null;
  let listed = 0;
  let behind = 0;
  for await (const log of new Anchors(clientOf(invocation)).list()) {
    if (!isAsked(log)) continue;
    listed += 1;
    if (limit !== null && log.lag_entries > limit) behind += 1;
    out(json ? JSON.stringify(log) : lineOf(log));
  }
  if (listed === 0) note("no such log: one that was just made is listed some seconds later");
  if (behind > 0) note(`FAILED: ${behind} log(s) have more than ${limit} entries after their anchor`);
  return listed > 0 && behind === 0 ? EXIT.holds : EXIT.fails;
}

function lineOf({
  principal,
  generation,
  size,
  anchor,
  age_seconds: age,
  lag_entries: lag,
}: AnchoredLog): string {
  const later = generation > 1 ? ` (generation ${generation})` : "";
  const name = principal === null ? "(the tenant's log of heads)" : `${shown(principal)}${later}`;
  if (anchor === null) return `${name}: ${size} entries, none anchored`;
  return `${name}: ${size} entries, ${lag} after the anchor of ${anchor.size}, ${age} s ago: ${shown(anchor.where)}`;
}

export const anchorsCommand: Command = {
  name: "anchors",
  usage: "[list] | add FILE --principal NAME --where TEXT [--receipt FILE]",
  summary: "Say that a head is kept elsewhere, and see how much came after the last one that is",
  details:
    "add takes the kept checkpoint in a file, as runseal head --out wrote it: exit 1 where the log does not go on from it.\n" +
    "list prints each log with its last anchor; with --max-lag it exits 1 where a log has more entries after it.",
  options: {
    ...PRINCIPAL_OPTION,
    "tenant-log": { type: "boolean", help: "the tenant's log of heads, in place of a principal's" },
    where: { type: "string", value: "TEXT", help: "where the head is kept, in your words (add)" },
    receipt: { type: "string", value: "FILE", help: "what you got for it there (add)" },
    "max-lag": {
      type: "string",
      value: "N",
      help: "exit 1 where more than N entries came after an anchor (list)",
    },
    ...SERVER_OPTIONS,
    ...JSON_OPTION,
  },
  async run(invocation) {
    const [action = "list", file, ...more] = invocation.positionals;
    const isAdd = action === "add";
    if ((!isAdd && action !== "list") || more.length > 0 || (file !== undefined) !== isAdd) {
      throw new UsageError("anchors list, or anchors add FILE");
    }
    const foreign = isAdd ? ["max-lag"] : ["where", "receipt"];
    const misplaced = foreign.find((name) => invocation.values[name] !== undefined);
    if (misplaced !== undefined) throw new UsageError(`--${misplaced} has no place in anchors ${action}`);
    return isAdd ? add(invocation, file ?? "") : list(invocation);
  },
};
