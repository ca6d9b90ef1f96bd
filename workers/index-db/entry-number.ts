/**
 * The number of an entry in D1, `entries.entry`: the number of its log in this database, and its sequence number in the
 * low 32 bits. A query that goes by the sequence number within a log compares numbers: they are the primary key.
 *
 * @module
 */

/** The highest sequence number that a number has room for. */
export const MAX_SEQ = 0xffff_ffff;

/**
 * SQL for the number of an entry. A sequence number beyond the last stands for the last: it must not reach into the next
 * log.
 *
 * A query may bound `e.entry` once from below and once from above: SQLite seeks by one of two lower bounds, and which one
 * is not for us to say.
 *
 * @param log SQL for the log's number
 * @param seq SQL for the sequence number, at least 0
 */
export function entryNumber(log: string, seq: string): string {
  return `(${log} << 32 | min(${seq}, ${MAX_SEQ}))`;
}

/** SQL: the row `e` of `entries` is of the log `l`. */
export const ENTRY_OF_LOG = `e.entry BETWEEN ${entryNumber("l.log", "0")} AND ${entryNumber("l.log", String(MAX_SEQ))}`;
