/**
 * Looks ids up in D1's unique (log, id) index: those that the log itself no longer remembers.
 *
 * @module
 */
import { fromBase64 } from "../../shared/bytes.ts";
import { formatRow } from "../../shared/entry/row.ts";
import type { KnownEntry } from "./commit.ts";

/** Entries of the log that carry one of the ids. Throws what D1 throws. */
export async function lookUpIds(
  db: D1Database,
  logId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, KnownEntry>> {
  const { results } = await db
    .prepare(
      `SELECT e.id, e.seq, e.hash, e.leaf, e.content, e.salts FROM json_each(?1) i
       JOIN logs l ON l.log_id = ?2 JOIN entries e ON e.log = l.log AND e.id = i.value`,
    )
    .bind(JSON.stringify(ids), logId)
    .all<{
      id: string;
      seq: number;
      hash: string;
      leaf: string;
      content: string | null;
      salts: string | null;
    }>();
  return new Map(
    results.map((row) => [
      row.id,
      {
        seq: row.seq,
        hash: row.hash,
        leaf: fromBase64(row.leaf),
        row: formatRow({ columns: "{}", values: row.content, salts: row.salts }),
      },
    ]),
  );
}
