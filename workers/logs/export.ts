/**
 * Writes a log's bundle as a stream: pages of entries from D1, hashes and head from the log.
 *
 * @module
 */

import type { FieldLine } from "../../shared/bundle/format.ts";
import { toHex } from "../../shared/bytes.ts";
import { splitSections } from "../../shared/entry/content.ts";
import { formatOrigin } from "../../shared/entry/log-id.ts";
import type { Env } from "../env.ts";
import type { Execution } from "../http/route.ts";
import type { EntryRow } from "../index-db/entries.ts";
import { queryLog } from "../index-db/entries.ts";
import { logEvent } from "../log-event.ts";
import type { OpenLog } from "./open-log.ts";
import { refusal } from "./open-log.ts";
import { barrier, indexSession, logIdOf } from "./read.ts";
import { registryState } from "./registry.ts";

const PAGE = 500;
const HASHES = 10_000;

export interface ExportRange {
  readonly from: number;
  readonly to: number | undefined;
  readonly content: boolean;
}

function contentLine(row: EntryRow): string | null {
  if (row.content === null || row.salts === null) return null;
  const salts = splitSections(row.salts);
  const fields: FieldLine[] = [];
  for (const [section, texts] of splitSections(row.content)) {
    for (const [name, text] of texts) {
      const salt = salts.get(section)?.get(name)?.slice(1, -1);
      if (salt !== undefined) fields.push({ section, name, salt, text });
    }
  }
  return fields.length === 0 ? null : JSON.stringify({ t: "content", seq: row.seq, fields });
}

/**
 * The bundle as a streamed answer. The head is fixed first, so that entries appended meanwhile are not in it.
 * A stream that breaks off has no checkpoint line: verification says that it is truncated.
 */
export async function exportBundle(
  env: Env,
  execution: Execution,
  log: OpenLog,
  range: ExportRange,
): Promise<Response> {
  await barrier(log);
  const outcome = await log.stub.head(log.identity, log.epoch);
  if (!outcome.ok) throw refusal(outcome);
  // Entries of the head that D1 did not hold at the first barrier are there after a second one.
  await barrier(log);
  const { head } = outcome;
  // No record beyond the head's own time: one that retires its signer would make a good head look like an old one.
  const epoch = Math.max(log.epoch, head.epoch);
  const registry = await registryState(env, log.identity.tenant, { epoch });
  const to = Math.min(range.to ?? head.size, head.size);
  const from = Math.min(range.from, to + 1);
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const encoder = new TextEncoder();
  const write = (lines: readonly string[]): Promise<void> =>
    lines.length === 0 ? Promise.resolve() : writer.write(encoder.encode(`${lines.join("\n")}\n`));

  async function hashes(first: number, last: number): Promise<void> {
    for (let at = first; at <= last; ) {
      const page = await log.stub.range(log.identity, log.epoch, at - 1, Math.min(last, at - 1 + HASHES));
      if (!page.ok) throw refusal(page);
      const count = page.leaves.length / 32;
      if (count === 0) return;
      await write(
        Array.from({ length: count }, (_, i) =>
          JSON.stringify({ t: "hash", seq: at + i, hash: toHex(page.leaves.subarray(i * 32, i * 32 + 32)) }),
        ),
      );
      at += count;
    }
  }

  async function entries(): Promise<void> {
    let after = from - 1;
    while (after < to) {
      const page = await queryLog(indexSession(env), logIdOf(log), { from, to }, after, PAGE);
      const last = page.rows.at(-1);
      if (last === undefined) return;
      const out: string[] = [];
      for (const row of page.rows) {
        out.push(JSON.stringify({ t: "leaf", seq: row.seq, hash: row.hash, leaf: row.leaf }));
        const content = range.content ? contentLine(row) : null;
        if (content !== null) out.push(content);
      }
      await write(out);
      after = last.seq;
    }
  }

  async function run(): Promise<void> {
    await write([
      JSON.stringify({
        runseal: "bundle.v1",
        registry_id: registry.registryId,
        origin: formatOrigin(log.identity),
        from,
        to,
      }),
      ...registry.records
        .slice(0, epoch + 1)
        .map(({ epoch: at, record, signatures }) =>
          JSON.stringify({ t: "registry", epoch: at, record, signatures }),
        ),
    ]);
    await hashes(1, from - 1);
    await entries();
    await hashes(to + 1, head.size);
    await write([JSON.stringify({ t: "checkpoint", checkpoint: head.checkpoint })]);
    await writer.close();
  }

  execution.waitUntil(
    run().catch(async (error: unknown) => {
      logEvent("export-broken", { error: error instanceof Error ? error.name : "unknown" });
      await writer.abort(error).catch(() => {});
    }),
  );
  return new Response(readable, {
    headers: { "content-type": "application/x-ndjson", "cache-control": "no-store" },
  });
}
