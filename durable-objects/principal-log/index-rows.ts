/**
 * Takes a log's rows out of D1.
 *
 * @module
 */
import { ENTRY_OF_LOG } from "../../workers/index-db/entry-number.ts";

/** Rows that one statement deletes: D1 allows it 30 seconds. */
const ROWS_AT_ONCE = 5000;

const DELETE_SOME = [
  `DELETE FROM entries WHERE entry IN
    (SELECT e.entry FROM logs l JOIN entries e ON ${ENTRY_OF_LOG} WHERE l.log_id = ?1 LIMIT ${ROWS_AT_ONCE})`,
  `DELETE FROM runs WHERE log = (SELECT log FROM logs WHERE log_id = ?1) AND run IN
    (SELECT r.run FROM logs l JOIN runs r ON r.log = l.log WHERE l.log_id = ?1 LIMIT ${ROWS_AT_ONCE})`,
];

/**
 * Deletes a log's entries and runs; first D1's own row of the log says that it holds none. May be done again where it was
 * cut off. Throws what D1 throws.
 *
 * @param logId hex
 */
export async function emptyIndex(db: D1Database, logId: string): Promise<void> {
  await db
    .prepare("UPDATE logs SET last_seq = 0, last_hash = ?1, checkpoint = NULL WHERE log_id = ?1")
    .bind(logId)
    .run();
  for (const remove of DELETE_SOME) {
    for (;;) {
      const { meta } = await db.prepare(remove).bind(logId).run();
      if (meta.changes === 0) break;
    }
  }
}
