/**
 * Takes a log's rows out of D1.
 *
 * @module
 */

/** Rows that one statement deletes: D1 allows it 30 seconds. */
const ROWS_AT_ONCE = 5000;

/**
 * Deletes a log's entries and runs; first D1's own row of the log says that it holds none. May be done again where it was
 * cut off. Throws what D1 throws.
 *
 * @param logId hex
 */
export async function emptyIndex(db: D1Database, logId: string): Promise<void> {
  await db.prepare("UPDATE logs SET last_seq = 0, last_hash = ?1 WHERE log_id = ?1").bind(logId).run();
  for (const [table, key] of [
    ["entries", "seq"],
    ["runs", "run"],
  ]) {
    const some = `SELECT r.${key} FROM ${table} r JOIN logs l ON l.log = r.log WHERE l.log_id = ?1 LIMIT ${ROWS_AT_ONCE}`;
    const remove = `DELETE FROM ${table} WHERE log = (SELECT log FROM logs WHERE log_id = ?1) AND ${key} IN (${some})`;
    for (;;) {
      const { meta } = await db.prepare(remove).bind(logId).run();
      if (meta.changes === 0) break;
    }
  }
}
