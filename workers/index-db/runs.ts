/**
 * Queries over the runs of one log that begin within bounds: what a re-check job goes through. The bounds are fixed, so
 * that the same query answers the same at any later time.
 *
 * @module
 */
import { entryNumber } from "./entry-number.ts";

/** Runs whose first entry is within these. */
export interface RunBounds {
  /** The last sequence number that counts. */
  readonly size: number;
  /** Nanoseconds since the epoch as decimal text: recorded from then on. */
  readonly since: string | null;
  /** Recorded before then. */
  readonly until: string | null;
}

/** An answer, and how many entries of the log D1 held when it gave it. */
export interface Indexed<T> {
  readonly found: T;
  readonly indexed: number;
}

// The first entry of a run, by the primary key. A time that is there no more counts as the oldest.
const BEGIN = "CAST(coalesce(e.recorded_at, 0) AS INTEGER)";

function from({ size, since, until }: RunBounds): { sql: string; values: (string | number)[] } {
  const timed = since !== null || until !== null;
  const parts = ["l.log_id = ?", "r.first_seq <= ?"];
  const values: (string | number)[] = [size];
  if (since !== null) {
    parts.push(`${BEGIN} >= CAST(? AS INTEGER)`);
    values.push(since);
  }
  if (until !== null) {
    parts.push(`${BEGIN} < CAST(? AS INTEGER)`);
    values.push(until);
  }
  const join = timed ? `LEFT JOIN entries e ON e.entry = ${entryNumber("r.log", "r.first_seq")}` : "";
  return { sql: `FROM logs l JOIN runs r ON r.log = l.log ${join} WHERE ${parts.join(" AND ")}`, values };
}

async function ask<Row>(
  db: D1DatabaseSession,
  logId: string,
  sql: string,
  values: readonly (string | number)[],
): Promise<Indexed<readonly Row[]>> {
  const [answer, log] = await db.batch([
    db.prepare(sql).bind(logId, ...values),
    db.prepare("SELECT last_seq FROM logs WHERE log_id = ?").bind(logId),
  ]);
  const indexed = (log?.results[0] as { last_seq: number } | undefined)?.last_seq ?? 0;
  return { found: (answer?.results ?? []) as unknown as Row[], indexed };
}

/** How many there are. */
export async function countRuns(
  db: D1DatabaseSession,
  logId: string,
  bounds: RunBounds,
): Promise<Indexed<number>> {
  const { sql, values } = from(bounds);
  const { found, indexed } = await ask<{ n: number }>(db, logId, `SELECT count(*) AS n ${sql}`, values);
  return { found: found[0]?.n ?? 0, indexed };
}

/** Their names after one, in the order of names: that is the order of the primary key. */
export async function pageRuns(
  db: D1DatabaseSession,
  logId: string,
  bounds: RunBounds,
  after: string,
  limit: number,
): Promise<Indexed<readonly string[]>> {
  const { sql, values } = from(bounds);
  const page = `SELECT r.run ${sql} AND r.run > ? ORDER BY r.run LIMIT ?`;
  const { found, indexed } = await ask<{ run: string }>(db, logId, page, [...values, after, limit]);
  return { found: found.map(({ run }) => run), indexed };
}

/** The newest of them, with the times of their first entries as decimal text. */
export async function newestRuns(
  db: D1DatabaseSession,
  logId: string,
  bounds: RunBounds,
  limit: number,
): Promise<Indexed<readonly { readonly run: string; readonly at: string }[]>> {
  const { sql, values } = from({ ...bounds, since: bounds.since ?? "0" });
  const newest = `SELECT r.run, CAST(coalesce(e.recorded_at, 0) AS TEXT) AS at ${sql} ORDER BY r.first_seq DESC LIMIT ?`;
  return ask(db, logId, newest, [...values, limit]);
}
