/**
 * `runseal export`: the bundle for offline verification.
 *
 * @module
 */
import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Command } from "../command.ts";
import { clientOf, EXIT, PRINCIPAL_OPTION, positive, required, SERVER_OPTIONS, text } from "../command.ts";

const STEP = 8 * 1024 * 1024;

export const exportCommand: Command = {
  name: "export",
  usage: "--principal NAME [--out FILE]",
  summary: "Write a log's bundle (NDJSON): everything that offline verification needs",
  details: "Verify it with: runseal verify FILE --registry ID (or --checkpoint FILE, one that you kept).",
  options: {
    ...PRINCIPAL_OPTION,
    out: { type: "string", short: "o", value: "FILE", help: "write there; standard output without it" },
    from: { type: "string", value: "SEQ", help: "first entry to include; what is before is there as hashes" },
    to: { type: "string", value: "SEQ", help: "last entry to include" },
    "no-content": { type: "boolean", help: "leave the values out: leaves and proofs alone" },
    disclose: {
      type: "string",
      value: "FIELDS",
      help: "only these values, as section.name with commas between: action.tool,outcome.result",
    },
    recipient: { type: "string", value: "NAME", help: "to whom values are handed out, for the record" },
    ...SERVER_OPTIONS,
  },
  async run(invocation) {
    const { values, note } = invocation;
    const from = positive(values, "from");
    const to = positive(values, "to");
    const disclose = text(values, "disclose");
    const recipient = text(values, "recipient");
    const response = await clientOf(invocation).export(required(values, "principal"), {
      ...(from === undefined ? {} : { from }),
      ...(to === undefined ? {} : { to }),
      ...(values["no-content"] === true ? { content: false } : {}),
      ...(disclose === undefined ? {} : { disclose }),
      ...(recipient === undefined ? {} : { recipient }),
    });
    if (response.body === null) return EXIT.usage;
    const file = text(values, "out");
    let bytes = 0;
    let next = STEP;
    async function* counted(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      for await (const chunk of source) {
        bytes += chunk.length;
        if (bytes >= next) {
          note(`${Math.round(bytes / 1024 / 1024)} MiB`);
          next += STEP;
        }
        yield chunk;
      }
    }
    const target = file === undefined ? process.stdout : createWriteStream(file);
    const source = response.body as unknown as AsyncIterable<Uint8Array>;
    await pipeline(Readable.from(counted(source)), target, { end: file !== undefined });
    if (file !== undefined) note(`wrote ${bytes} bytes to ${file}`);
    return EXIT.holds;
  },
};
