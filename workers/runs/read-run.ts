/**
 * Reads the entries of one run from D1, page by page, in order.
 *
 * @module
 */
import { fromBase64 } from "../../shared/bytes.ts";
import { decodeLeaf } from "../../shared/entry/decode-leaf.ts";
import { viewOf } from "../../shared/entry/to-view.ts";
import type { EntryView } from "../../shared/entry/view.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import type { EntryRow } from "../index-db/entries.ts";
import { queryLog } from "../index-db/entries.ts";
import type { OpenLog } from "../logs/open-log.ts";
import { indexSession, logIdOf, requireIndexed } from "../logs/read.ts";

const PAGE = 500;

/** A stored row as the folds read it. Throws a 503 problem for one that somebody else wrote over. */
export function viewOfRow(row: EntryRow): EntryView {
  try {
    return viewOf(decodeLeaf(fromBase64(row.leaf)), row.hash, row.content);
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    throw new Problem("index-conflict", {
      retryAfter: 1,
      detail: `entry ${row.seq} can't be read any more`,
    });
  }
}

/**
 * The run's entries up to entry `size`, in order; a page of rows is held at a time. Nothing for a run that the log does
 * not have. Throws 503 problems.
 *
 * @param size what the log's barrier answered: D1 holds at least so many entries
 */
export async function* readRun(env: Env, log: OpenLog, run: string, size: number): AsyncGenerator<EntryView> {
  for (let after = 0; ; ) {
    const page = await queryLog(indexSession(env), logIdOf(log), { run, to: size }, after, PAGE);
    await requireIndexed(log, page.indexed, size);
    for (const row of page.rows) yield viewOfRow(row);
    const last = page.rows.at(-1);
    if (!page.more || last === undefined) return;
    after = last.seq;
  }
}
