/**
 * Queries for audits of runs: a run together with what bears on it in its log, what a run is selected by, and a tenant's
 * runs from the newest on.
 *
 * @module
 */
import type { EntryRow, RowPage } from "./entries.ts";
import { bounded, cut, SELECT, SIZE } from "./entries.ts";
import { entryNumber } from "./entry-number.ts";

type SizedRow = EntryRow & { before: number; size: number };

/** Entries of the log that one statement goes through: there is no index by run, nor by kind within a log. */
const WINDOW = 20_000;

export interface AuditPage extends RowPage {
  /** Where to go on: every entry up to here was looked at. */
  readonly reached: number;
}

/** The run's entries, and those of the kinds in any run or none, after `after` and up to `to`, in the log's order. */
export async function queryRunInLog(
  db: D1DatabaseSession,
  logId: string,
  run: string,
  kinds: readonly string[],
  after: number,
  to: number,
  limit: number,
): Promise<AuditPage> {
  const end = Math.min(after + WINDOW, to);
  const inner = `${SELECT}, ${SIZE} AS size, e.seq AS ord FROM logs l JOIN entries e
    ON e.entry > ${entryNumber("l.log", "?2")} AND e.entry <= ${entryNumber("l.log", "?3")}
    WHERE l.log_id = ?1 AND (e.run = ?4 OR e.kind IN (SELECT value FROM json_each(?5))) ORDER BY e.entry LIMIT ?6`;
  const [page, log] = await db.batch([
    db.prepare(bounded(inner)).bind(logId, after, end, run, JSON.stringify(kinds), limit + 1),
    db.prepare("SELECT last_seq FROM logs WHERE log_id = ?").bind(logId),
  ]);
  const indexed = (log?.results[0] as { last_seq: number } | undefined)?.last_seq ?? 0;
  const found = cut((page?.results ?? []) as unknown as SizedRow[], limit, indexed);
  const last = found.rows.at(-1);
  return { ...found, reached: found.more && last !== undefined ? last.seq : end };
}

/** Where a run lies in its log. */
export interface RunSpan {
  readonly first_seq: number;
  readonly last_seq: number;
}

/** The run's span; null where the log has no such run. */
export async function queryRunSpan(
  db: D1DatabaseSession,
  logId: string,
  run: string,
): Promise<{ span: RunSpan | null; indexed: number }> {
  const [span, log] = await db.batch([
    db
      .prepare(
        `SELECT r.first_seq, r.last_seq FROM logs l JOIN runs r ON r.log = l.log AND r.run = ?2
         WHERE l.log_id = ?1`,
      )
      .bind(logId, run),
    db.prepare("SELECT last_seq FROM logs WHERE log_id = ?").bind(logId),
  ]);
  return {
    span: (span?.results[0] as RunSpan | undefined) ?? null,
    indexed: (log?.results[0] as { last_seq: number } | undefined)?.last_seq ?? 0,
  };
}

/** Kinds that say what a run is: the columns of its row are read from them. */
const ROW_KINDS = ["run.created", "run.started", "run.status"];

/** Of a run's entries, those that it is selected by: its row's, and the starts of calls of the tool, where one is given. */
export async function queryRunFacts(
  db: D1DatabaseSession,
  logId: string,
  run: string,
  { first_seq, last_seq }: RunSpan,
  tool: string | undefined,
  after: number,
  limit: number,
): Promise<RowPage> {
  // A tool whose name is too long for the column has none there.
  const inner = `${SELECT}, ${SIZE} AS size, e.seq AS ord FROM logs l JOIN entries e
    ON e.entry > ${entryNumber("l.log", "max(?2 - 1, ?4)")} AND e.entry <= ${entryNumber("l.log", "?3")}
    WHERE l.log_id = ?1 AND e.run = ?5
      AND (e.kind IN (SELECT value FROM json_each(?6))
        OR (?7 IS NOT NULL AND e.kind = 'tool.call.started' AND (e.tool = ?7 OR e.tool IS NULL)))
    ORDER BY e.entry LIMIT ?8`;
  const { results } = await db
    .prepare(bounded(inner))
    .bind(logId, first_seq, last_seq, after, run, JSON.stringify(ROW_KINDS), tool ?? null, limit + 1)
    .all<SizedRow>();
  return cut(results, limit, 0);
}

/** A run of the tenant, and how it lies among the others. */
export interface TenantRun extends RunSpan {
  readonly log_id: string;
  /** The principal's name. */
  readonly name: string;
  readonly run: string;
  /** The arrival of its first entry, tenant-wide: the newest run has the highest. */
  readonly pos: number;
}

export interface RunsFilter {
  /** Names; null for every principal of the tenant. */
  readonly principals: readonly string[] | null;
  /** The run's name, or what stands before the colon in it. */
  readonly named?: { readonly exactly: string; readonly before: string } | undefined;
}

/** A page of the tenant's runs, the newest first, from before the arrival `before`. */
export async function queryNewestRuns(
  db: D1DatabaseSession,
  tenant: string,
  { principals, named }: RunsFilter,
  before: number | null,
  limit: number,
): Promise<readonly TenantRun[]> {
  const scope = ["l.tenant = ?"];
  const scopeValues: (string | number)[] = [tenant];
  if (principals !== null) {
    scope.push("l.name IN (SELECT value FROM json_each(?))");
    scopeValues.push(JSON.stringify(principals));
  }
  if (before !== null) {
    scope.push("e.pos < ?");
    scopeValues.push(before);
  }
  const select = (condition: string): string =>
    `SELECT l.log_id, l.name, r.run, r.first_seq, r.last_seq, e.pos FROM logs l JOIN runs r ON r.log = l.log
     CROSS JOIN entries e ON e.entry = ${entryNumber("r.log", "r.first_seq")} WHERE ${[...scope, condition].join(" AND ")}`;
  // Two searches by name and not one with OR, which would go through all the runs; ";" is the character after ":".
  const searches: readonly [string, readonly string[]][] =
    named === undefined
      ? [["TRUE", []]]
      : [
          ["r.run = ?", [named.exactly]],
          ["r.run > ? AND r.run < ?", [`${named.before}:`, `${named.before};`]],
        ];
  const { results } = await db
    .prepare(
      `${searches.map(([condition]) => select(condition)).join(" UNION ALL ")} ORDER BY pos DESC LIMIT ?`,
    )
    .bind(...searches.flatMap(([, values]) => [...scopeValues, ...values]), limit)
    .all<TenantRun>();
  return results;
}
