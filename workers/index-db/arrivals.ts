/**
 * What D1 says of how far it is: with a log, and with the whole tenant.
 *
 * @module
 */
import type { Arrival, IndexWitness } from "../../durable-objects/tenant-directory/index-state.ts";

/** Up to which entry D1 holds the logs of these ids (hex); a log that it does not know is not in the answer. */
export const INDEXED_LOGS =
  "SELECT log_id, last_seq FROM logs WHERE log_id IN (SELECT value FROM json_each(?))";

export interface IndexedLogRow {
  readonly log_id: string;
  readonly last_seq: number;
}

/** Up to which entry D1 holds the log. Throws what D1 throws. */
export async function indexedSeq(db: D1DatabaseSession, logId: string): Promise<number> {
  const row = await db
    .prepare("SELECT last_seq FROM logs WHERE log_id = ?")
    .bind(logId)
    .first<{ last_seq: number }>();
  return row?.last_seq ?? 0;
}

/** Up to which entry D1 holds each of the logs that it knows, by log id. Throws what D1 throws. */
export async function indexedSeqs(
  db: D1DatabaseSession,
  logIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const { results } = await db.prepare(INDEXED_LOGS).bind(JSON.stringify(logIds)).all<IndexedLogRow>();
  return new Map(results.map(({ log_id, last_seq }) => [log_id, last_seq]));
}

/** The tenant's newest arrival; null where nothing has arrived. Throws what D1 throws. */
export async function newestArrival(
  db: D1Database,
  tenant: string,
): Promise<(IndexWitness & Arrival) | null> {
  return db
    .prepare(
      `SELECT l.principal, l.generation, e.seq, e.pos + 1 AS pos, CAST(unixepoch('subsec') * 1000 AS INTEGER) AS at
       FROM entries e INDEXED BY entries_by_arrival JOIN logs l ON l.log = e.log
       WHERE e.tenant = ?1 ORDER BY e.pos DESC LIMIT 1`,
    )
    .bind(tenant)
    .first<IndexWitness & Arrival>();
}
