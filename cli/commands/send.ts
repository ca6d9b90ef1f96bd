/**
 * `runseal send`: entries from a file to a log, in batches, with retries that store nothing twice.
 *
 * @module
 */

import type { Append } from "../../sdk/client.ts";
import { ProblemError, withId } from "../../sdk/client.ts";
import { fitting, sizeOf } from "../../sdk/limits.ts";
import { MAX_BATCH_BYTES, MAX_BATCH_ENTRIES } from "../../shared/entry/limits.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { Command, Invocation } from "../command.ts";
import {
  clientOf,
  EXIT,
  JSON_OPTION,
  PRINCIPAL_OPTION,
  required,
  SERVER_OPTIONS,
  UsageError,
} from "../command.ts";
import { fileLines } from "../files.ts";

/** Entries of one request, well below what the service takes, so that progress is seen. */
const BATCH = Math.min(500, MAX_BATCH_ENTRIES);
/** Bytes of one request, with room for the ids that are added. */
const BATCH_BYTES = MAX_BATCH_BYTES - 256 * 1024;

export interface Sent {
  stored: number;
  seen: number;
  refused: number;
  head: Append["head"] | null;
}

/** Sends entry texts in batches; each receipt goes to `receipt`. Throws `ProblemError` where the service is away. */
export async function sendTexts(
  invocation: Invocation,
  principal: string,
  texts: AsyncIterable<string> | Iterable<string>,
  receipt: (line: Append["results"][number]) => void,
): Promise<Sent> {
  const client = clientOf(invocation);
  const sent: Sent = { stored: 0, seen: 0, refused: 0, head: null };
  let batch: string[] = [];
  let bytes = 0;
  let most = BATCH;
  const flush = async (): Promise<void> => {
    for (let at = 0; at < batch.length; ) {
      const part = batch.slice(at, at + most);
      const results = await appendOrRefusals(client, principal, part, sent);
      if (typeof results === "number") {
        most = results;
        continue;
      }
      for (const result of results) {
        if (result.error !== undefined) sent.refused += 1;
        else if (result.status === "seen") sent.seen += 1;
        else sent.stored += 1;
        receipt({ ...result, index: at + result.index });
      }
      at += part.length;
      invocation.note(
        `sent ${sent.stored + sent.seen} entries${sent.refused > 0 ? `, ${sent.refused} refused` : ""}`,
      );
    }
    batch = [];
    bytes = 0;
  };
  for await (const text of texts) {
    if (text.trim() === "") continue;
    const size = Buffer.byteLength(text) + 64;
    if (batch.length >= BATCH || (batch.length > 0 && bytes + size > BATCH_BYTES)) await flush();
    batch.push(text);
    bytes += size;
  }
  await flush();
  return sent;
}

/** What became of each entry; how many may be sent at once where a limit never takes as many as these. */
async function appendOrRefusals(
  client: ReturnType<typeof clientOf>,
  principal: string,
  batch: readonly string[],
  sent: Sent,
): Promise<Append["results"] | number> {
  try {
    const answer = await client.appendTexts(principal, batch);
    sent.head = answer.head;
    return answer.results;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    const { results } = error.problem;
    if (Array.isArray(results)) return results as Append["results"];
    const most = fitting(batch.map(sizeOf), error.limits);
    if (error.status === 429 && most < batch.length) return most;
    throw error;
  }
}

/** An entry's text with an id; a line that is no JSON is a usage error that names it. */
function checked(text: string, line: number): string {
  try {
    return withId(text);
  } catch (error) {
    if (error instanceof RunsealError) throw new UsageError(`line ${line}: ${error.message}`);
    throw error;
  }
}

async function* entriesOf(path: string): AsyncGenerator<string> {
  let line = 0;
  for await (const text of fileLines(path)) {
    line += 1;
    if (text.trim() !== "") yield checked(text, line);
  }
}

export const sendCommand: Command = {
  name: "send",
  usage: "FILE --principal NAME",
  summary: "Send entries (NDJSON; - for standard input) to a principal's log",
  details:
    "Prints a receipt a line: seq, hash and id. Sending a file again stores nothing twice if its entries have ids.",
  options: { ...PRINCIPAL_OPTION, ...SERVER_OPTIONS, ...JSON_OPTION },
  async run(invocation) {
    const { values, positionals, out, json } = invocation;
    const [path] = positionals;
    if (path === undefined || positionals.length > 1)
      throw new UsageError("send takes one file, or - for standard input");
    const principal = required(values, "principal");
    const sent = await sendTexts(invocation, principal, entriesOf(path), (result) => {
      if (json) out(JSON.stringify(result));
      else if (result.error === undefined) out(`${result.seq} ${result.hash} ${result.id}`);
      else
        out(
          `refused ${result.id ?? ""} ${result.error.title}: ${result.error.pointer ?? ""} ${result.error.detail ?? ""}`.trim(),
        );
    });
    if (!json && sent.head !== null) out(`head: ${sent.head.seq}:${sent.head.hash}`);
    return sent.refused > 0 ? EXIT.fails : EXIT.holds;
  },
};
