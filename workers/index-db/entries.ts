/**
 * Queries over the entries that D1 holds. Every statement is bound to a tenant: by the log's id, which belongs to
 * one, or by the tenant's own.
 *
 * @module
 */
import type { IndexedLogRow } from "./arrivals.ts";
import { INDEXED_LOGS } from "./arrivals.ts";
import { entryNumber, MAX_SEQ } from "./entry-number.ts";

/** A row of `entries`, as reading needs it. */
export interface EntryRow {
  readonly seq: number;
  readonly pos: number;
  readonly hash: string;
  readonly leaf: string;
  readonly content: string | null;
  readonly salts: string | null;
  readonly name: string;
}

/** What a query selects; every member is optional but the range is checked by the caller. */
export interface EntryFilter {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly session?: string | undefined;
  readonly run?: string | undefined;
  readonly kind?: string | undefined;
  readonly tool?: string | undefined;
  readonly status?: string | undefined;
  /** Nanoseconds since the epoch, inclusive. */
  readonly since?: bigint | undefined;
  /** Nanoseconds since the epoch, exclusive. */
  readonly until?: bigint | undefined;
}

interface Condition {
  readonly sql: string;
  readonly values: readonly (string | number)[];
}

function conditions(filter: EntryFilter): Condition[] {
  const out: Condition[] = [];
  const add = (sql: string, value: string | number | undefined): void => {
    if (value !== undefined) out.push({ sql, values: [value] });
  };
  add("e.seq >= ?", filter.from);
  add("e.seq <= ?", filter.to);
  add("e.session = ?", filter.session);
  add("e.run = ?", filter.run);
  add("e.tool = ?", filter.tool);
  add("e.status = ?", filter.status);
  // Times pass as text: a bound number would lose its last digits on the way.
  add("e.recorded_at >= CAST(? AS INTEGER)", filter.since?.toString());
  add("e.recorded_at < CAST(? AS INTEGER)", filter.until?.toString());
  if (filter.kind !== undefined) {
    const kinds = filter.kind.split(",");
    out.push({ sql: `e.kind IN (${kinds.map(() => "?").join(", ")})`, values: kinds });
  }
  return out;
}

/** Bytes of one page's leaves and contents: a Worker holds 128 MB, and an answer is text built from them. */
const MAX_PAGE_BYTES = 8 * 1024 * 1024;

export const SELECT = "SELECT e.seq, e.pos, e.hash, e.leaf, e.content, e.salts, l.name";
export const SIZE = "length(e.leaf) + coalesce(length(e.content), 0)";

/**
 * Cuts a page so that its bytes stay bounded: rows after the one that passes the bound are left for the next page.
 * The window runs over the page alone, since the inner query is limited first.
 */
export function bounded(inner: string): string {
  return `SELECT * FROM (SELECT *, sum(size) OVER (ORDER BY ord) - size AS before FROM (${inner})) WHERE before < ${MAX_PAGE_BYTES} ORDER BY ord`;
}

export interface RowPage {
  readonly rows: readonly EntryRow[];
  /** Whether more rows follow the last one. */
  readonly more: boolean;
  /** Entries of the log that D1 holds, at the same moment. */
  readonly indexed: number;
}

/** One log's entries after `after`, in order. */
export async function queryLog(
  db: D1DatabaseSession,
  logId: string,
  filter: EntryFilter,
  after: number,
  limit: number,
): Promise<RowPage> {
  const { from = 1, to = MAX_SEQ, ...others } = filter;
  const { run } = others;
  // The run's span keeps the scan inside it: there is no index by run.
  const spanOf = (column: string): string =>
    `(SELECT ${column} FROM runs r WHERE r.log = l.log AND r.run = ?)`;
  const lower = run === undefined ? "?" : `max(?, ${spanOf("first_seq - 1")})`;
  const upper = run === undefined ? "?" : `min(?, ${spanOf("last_seq")})`;
  const inRun = run === undefined ? [] : [run];
  const parts = [
    { sql: "l.log_id = ?", values: [logId] },
    { sql: `e.entry > ${entryNumber("l.log", lower)}`, values: [Math.max(after, from - 1), ...inRun] },
    { sql: `e.entry <= ${entryNumber("l.log", upper)}`, values: [to, ...inRun] },
    ...conditions(others),
  ];
  const inner = `${SELECT}, ${SIZE} AS size, e.seq AS ord FROM logs l JOIN entries e
    WHERE ${parts.map(({ sql }) => sql).join(" AND ")} ORDER BY e.entry LIMIT ?`;
  const [page, log] = await db.batch([
    db.prepare(bounded(inner)).bind(...parts.flatMap(({ values }) => values), limit + 1),
    db.prepare("SELECT last_seq FROM logs WHERE log_id = ?").bind(logId),
  ]);
  const indexed = (log?.results[0] as { last_seq: number } | undefined)?.last_seq ?? 0;
  return cut(
    (page?.results ?? []) as unknown as (EntryRow & { before: number; size: number })[],
    limit,
    indexed,
  );
}

/** A page of the tenant's entries, and up to where D1 held some of its logs at the same moment, by log id. */
export interface TenantRowPage extends RowPage {
  readonly indexedLogs: ReadonlyMap<string, number>;
}

/**
 * The tenant's entries after the arrival position `after`, in arrival order.
 *
 * @param logIds the logs to tell of how far D1 holds them, hex
 */
export async function queryTenant(
  db: D1DatabaseSession,
  tenant: string,
  filter: EntryFilter,
  principals: readonly string[] | null,
  after: number,
  limit: number,
  logIds: readonly string[] = [],
): Promise<TenantRowPage> {
  const parts = [
    { sql: "e.tenant = ?", values: [tenant] },
    { sql: "e.pos > ?", values: [after] },
    ...conditions(filter),
  ];
  if (principals !== null) {
    parts.push({ sql: "l.name IN (SELECT value FROM json_each(?))", values: [JSON.stringify(principals)] });
  }
  const inner = `${SELECT}, ${SIZE} AS size, e.pos AS ord FROM entries e INDEXED BY entries_by_arrival JOIN logs l ON l.log = e.log
    WHERE ${parts.map(({ sql }) => sql).join(" AND ")} ORDER BY e.pos LIMIT ?`;
  const [page, logs] = await db.batch([
    db.prepare(bounded(inner)).bind(...parts.flatMap(({ values }) => values), limit + 1),
    db.prepare(INDEXED_LOGS).bind(JSON.stringify(logIds)),
  ]);
  const rows = (page?.results ?? []) as unknown as (EntryRow & { before: number; size: number })[];
  const indexed = (logs?.results ?? []) as unknown as IndexedLogRow[];
  return {
    ...cut(rows, limit, 0),
    indexedLogs: new Map(indexed.map(({ log_id, last_seq }) => [log_id, last_seq])),
  };
}

/** The page of what a bounded query answered. */
export function cut(
  rows: readonly (EntryRow & { before: number; size: number })[],
  limit: number,
  indexed: number,
): RowPage {
  const kept = rows.slice(0, limit);
  const last = rows.at(-1);
  const filled = last !== undefined && last.before + last.size >= MAX_PAGE_BYTES;
  return { rows: kept, more: rows.length > limit || filled, indexed };
}

/** What D1 says of a run's entries, by kind, tool and decision. */
export interface RunRow {
  readonly run: string;
  readonly first_seq: number;
  readonly last_seq: number;
  readonly entries: number;
}

/** A page of a log's runs by the place of their first entry, after `after`. */
export async function queryRuns(
  db: D1DatabaseSession,
  logId: string,
  after: number,
  limit: number,
): Promise<{ runs: readonly RunRow[]; indexed: number }> {
  const [page, log] = await db.batch([
    db
      .prepare(
        `SELECT r.run, r.first_seq, r.last_seq, r.entries FROM logs l JOIN runs r ON r.log = l.log
         WHERE l.log_id = ? AND r.first_seq > ? ORDER BY r.first_seq LIMIT ?`,
      )
      .bind(logId, after, limit),
    db.prepare("SELECT last_seq FROM logs WHERE log_id = ?").bind(logId),
  ]);
  return {
    runs: (page?.results ?? []) as unknown as RunRow[],
    indexed: (log?.results[0] as { last_seq: number } | undefined)?.last_seq ?? 0,
  };
}

export interface RunFacts {
  readonly run: RunRow | null;
  readonly indexed: number;
  readonly groups: readonly { kind: string; tool: string | null; decision: string | null; n: number }[];
  /** The last kinds that say how the run stands, newest first. */
  readonly lastStatus: { kind: string; status: string | null } | null;
  readonly firstAt: string | null;
  readonly lastAt: string | null;
}

/** The counts of one run. */
export async function queryRun(db: D1DatabaseSession, logId: string, run: string): Promise<RunFacts> {
  const where = `FROM logs l JOIN runs r ON r.log = l.log AND r.run = ?2
    JOIN entries e ON e.entry BETWEEN ${entryNumber("r.log", "r.first_seq")} AND ${entryNumber("r.log", "r.last_seq")}
      AND e.run = ?2 WHERE l.log_id = ?1`;
  const [row, groups, status, times, log] = await db.batch([
    db
      .prepare(
        `SELECT r.run, r.first_seq, r.last_seq, r.entries FROM logs l JOIN runs r ON r.log = l.log
         WHERE l.log_id = ?1 AND r.run = ?2`,
      )
      .bind(logId, run),
    db
      .prepare(
        `SELECT e.kind, e.tool, CASE WHEN e.kind = 'policy.evaluated' THEN e.content ->> '$.action.decision.outcome' END AS decision,
         count(*) AS n ${where} GROUP BY 1, 2, 3`,
      )
      .bind(logId, run),
    db
      .prepare(
        `SELECT e.kind, e.content ->> '$.action.status' AS status ${where} AND e.kind IN
         ('run.completed','run.failed','run.cancelled','run.timeout','run.status') ORDER BY e.entry DESC LIMIT 1`,
      )
      .bind(logId, run),
    db
      .prepare(
        `SELECT CAST(min(e.recorded_at) AS TEXT) AS first_at, CAST(max(e.recorded_at) AS TEXT) AS last_at ${where}`,
      )
      .bind(logId, run),
    db.prepare("SELECT last_seq FROM logs WHERE log_id = ?").bind(logId),
  ]);
  const at = times?.results[0] as { first_at: string | null; last_at: string | null } | undefined;
  return {
    run: (row?.results[0] as RunRow | undefined) ?? null,
    groups: (groups?.results ?? []) as unknown as RunFacts["groups"],
    lastStatus: (status?.results[0] as RunFacts["lastStatus"] | undefined) ?? null,
    firstAt: at?.first_at ?? null,
    lastAt: at?.last_at ?? null,
    indexed: (log?.results[0] as { last_seq: number } | undefined)?.last_seq ?? 0,
  };
}

/** A row with every column that queries rely on, for verification. */
export interface IndexedEntryRow {
  readonly seq: number;
  readonly hash: string;
  readonly leaf: string;
  readonly recorded_at: string;
  readonly id: string;
  readonly kind: string;
  readonly session: string | null;
  readonly run: string | null;
  readonly step: string | null;
  readonly call: string | null;
  readonly tool: string | null;
  readonly status: string | null;
  readonly content: string | null;
  readonly salts: string | null;
}

/** A log's rows from `from` to `to`, at most `limit` and bounded in bytes; and how far D1 was at that moment. */
export async function queryForVerify(
  db: D1DatabaseSession,
  logId: string,
  from: number,
  to: number,
  limit: number,
): Promise<{ readonly rows: readonly IndexedEntryRow[]; readonly indexed: number }> {
  const inner = `SELECT e.seq, e.hash, e.leaf, CAST(e.recorded_at AS TEXT) AS recorded_at, e.id, e.kind, e.session, e.run,
    e.step, e.call, e.tool, e.status, e.content, e.salts, ${SIZE} AS size, e.seq AS ord
    FROM logs l JOIN entries e ON e.entry BETWEEN ${entryNumber("l.log", "?2")} AND ${entryNumber("l.log", "?3")}
    WHERE l.log_id = ?1 ORDER BY e.entry LIMIT ?4`;
  const [page, log] = await db.batch([
    db.prepare(bounded(inner)).bind(logId, from, to, limit),
    db.prepare("SELECT last_seq FROM logs WHERE log_id = ?").bind(logId),
  ]);
  return {
    rows: (page?.results ?? []) as unknown as IndexedEntryRow[],
    indexed: (log?.results[0] as { last_seq: number } | undefined)?.last_seq ?? 0,
  };
}
