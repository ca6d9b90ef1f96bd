/**
 * Writes a log's bundle as a stream: pages of entries from D1, hashes and head from the log.
 *
 * @module
 */

import type { StoredRow } from "../../durable-objects/principal-log/types.ts";
import { toHex } from "../../shared/bytes.ts";
import { formatOrigin } from "../../shared/entry/log-id.ts";
import type { Env } from "../env.ts";
import type { Execution } from "../http/route.ts";
import { indexedSeq } from "../index-db/arrivals.ts";
import { queryLog } from "../index-db/entries.ts";
import { logEvent } from "../log-event.ts";
import { anchorLines, findAnchors } from "./anchor-lines.ts";
import type { Disclosure } from "./export-values.ts";
import { recordDisclosure, valuesLine } from "./export-values.ts";
import type { OpenLog } from "./open-log.ts";
import { refusal } from "./open-log.ts";
import { barrier, indexSession, logIdOf, requireIndexed } from "./read.ts";
import { registryState } from "./registry.ts";

const PAGE = 500;
const HASHES = 10_000;

export interface ExportRange {
  readonly from: number;
  readonly to: number | undefined;
  /** The values that are handed out; null: none. */
  readonly values: Disclosure | null;
  /** Whether the lines of the logs of heads are to be in it. They name other logs of the tenant. */
  readonly anchors: boolean;
}

/**
 * The bundle as a streamed answer. The head is fixed first, so that entries appended meanwhile are not in it.
 * A stream that breaks off has no checkpoint line: verification says that it is truncated.
 */
export async function exportBundle(
  env: Env,
  execution: Execution,
  opened: OpenLog,
  range: ExportRange,
): Promise<Response> {
  const anchors = range.anchors ? await findAnchors(env, opened) : null;
  // The tenant's log may know of a rotation that this isolate does not know of yet.
  const log = { ...opened, epoch: Math.max(opened.epoch, anchors?.epoch ?? 0) };
  // A sealed log is exported from its own storage: D1 may hold what contradicts it.
  const past = log.identity.past === true;
  if (!past) await barrier(log);
  const outcome = await log.stub.head(log.identity, log.epoch);
  if (!outcome.ok) throw refusal(outcome);
  // Entries of the head that D1 did not hold at the first barrier are there after a second one.
  if (!past) await barrier(log);
  const { head } = outcome;
  // No record beyond the head's own time: one that retires its signer would make a good head look like an old one.
  const epoch = Math.max(log.epoch, head.epoch);
  const registry = await registryState(env, log.identity.tenant, { epoch });
  const to = Math.min(range.to ?? head.size, head.size);
  const from = Math.min(range.from, to + 1);
  // Before the first byte: a bundle that breaks off tells nobody why.
  if (!past) await requireIndexed(log, await indexedSeq(indexSession(env), logIdOf(log)), head.size);
  if (range.values !== null) await recordDisclosure(env, log, range.values, from, to);
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

  async function indexedRows(after: number): Promise<readonly StoredRow[]> {
    const page = await queryLog(indexSession(env), logIdOf(log), { from, to }, after, PAGE);
    await requireIndexed(log, page.indexed, to);
    return page.rows;
  }

  async function storedRows(first: number): Promise<readonly StoredRow[]> {
    const page = await log.stub.stored(log.identity, log.epoch, first, to);
    if (!page.ok) throw refusal(page);
    return page.rows;
  }

  async function entries(): Promise<void> {
    let after = from - 1;
    while (after < to) {
      const rows = past ? await storedRows(after + 1) : await indexedRows(after);
      const last = rows.at(-1);
      if (last === undefined) return;
      const out: string[] = [];
      for (const row of rows) {
        out.push(JSON.stringify({ t: "leaf", seq: row.seq, hash: row.hash, leaf: row.leaf }));
        const values = range.values === null ? null : valuesLine(row, range.values.selection);
        if (values !== null) out.push(values);
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
    if (anchors !== null) {
      await write((await anchorLines(log, anchors, head.size)).map((line) => JSON.stringify(line)));
    }
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
