/**
 * The audit of a run from its entries, and of the run that a query selects among many (docs/audit.md "How to ask").
 *
 * @module
 */
import type { EntryView } from "../entry/view.ts";
import { refOf } from "./finding.ts";
import { type FindingsOptions, RunFindings } from "./findings.ts";
import { LedgerAudit } from "./langbot-audit.ts";
import { LedgerFold } from "./langbot-fold.ts";
import type { LedgerQuery } from "./langbot-query.ts";
import { envIssue, noRun } from "./langbot-report.ts";
import type { LedgerEvent, LedgerRow } from "./langbot-rows.ts";
import { type AuditedEntries, type AuditHead, type AuditReport, auditReport } from "./report.ts";
import { RunSelection } from "./run-selection.ts";

const NO_EXPECTATIONS: LedgerQuery = { mode: "strict" };

/** Audits one run. Its entries, and those of its context, are given in the order of their sequence numbers. */
export class RunAudit {
  readonly #run: string;
  readonly #query: LedgerQuery;
  readonly #context: "log" | "run";
  readonly #acceptsUnrecorded: boolean;
  readonly #ledger: LedgerAudit;
  readonly #fold: LedgerFold;
  readonly #findings: RunFindings;
  #row: LedgerRow | null = null;
  #entries: AuditedEntries | null = null;

  /** @param run the run as the log names it: entries of other runs are context */
  constructor(run: string, query: LedgerQuery = NO_EXPECTATIONS, options: FindingsOptions = {}) {
    this.#run = run;
    this.#query = query;
    this.#context = options.context ?? "run";
    this.#acceptsUnrecorded = options.unrecorded === "accept";
    this.#ledger = new LedgerAudit(query);
    this.#findings = new RunFindings(run, options);
    this.#fold = new LedgerFold(run, {
      event: (event: LedgerEvent) => this.#ledger.event(event),
      row: (row: LedgerRow) => {
        this.#row = row;
        this.#ledger.row(row);
      },
    });
  }

  /** Throws `RunsealError("audit-order")` where the entry does not come after the one before. */
  add(entry: EntryView): void {
    this.#findings.add(entry);
    if (entry.run !== this.#run) return;
    this.#fold.add(entry);
    const last = refOf(entry);
    const { first, count } = this.#entries ?? { first: last, count: 0 };
    this.#entries = { run: this.#run, first, last, count: count + 1 };
  }

  /** The row that the entries so far amount to; null where none is of the run. */
  row(): LedgerRow | null {
    if (this.#row === null && this.#entries !== null) this.#fold.finish();
    return this.#row;
  }

  /** Whether an entry starts the call that the query expects. True where it expects none. */
  get hasExpectedCall(): boolean {
    return this.#ledger.hasExpectedCall;
  }

  /** Something was too much to hold: the audit is not complete. */
  limit(what: string): void {
    this.#findings.list.limit(what);
  }

  /** The report, to be made once, after the last entry. A run without entries is none. */
  finish(head: AuditHead | null = null): AuditReport {
    if (this.row() === null) return auditReport({ ledger: noRun(this.#query.toolName), head });
    const found = this.#findings.finish();
    for (const { seq, hash, field, why } of this.#fold.unseen) found.notChecked({ seq, hash }, field, why);
    if (this.#fold.unseenCount > this.#fold.unseen.length) found.limit("further fields that are not there");
    if (this.#fold.mapped > 0)
      found.note(
        `${this.#fold.mapped} imported entries hold no row: their own fields were read in its place`,
      );
    const ledger = this.#ledger.finish();
    for (const what of this.#ledger.notRecorded) {
      if (this.#acceptsUnrecorded) found.note(`not recorded, and accepted as that: ${what}`);
      else found.notRecorded(what);
    }
    return auditReport({
      ledger,
      found,
      context: this.#context,
      entries: this.#entries,
      head,
    });
  }
}

/** A run that an audit may choose. */
export interface RunSource {
  /** As the log names it. */
  readonly run: string;
  /** Its entries, and those of its context, in order; read at most once, and to the end. */
  readonly entries: () => AsyncIterable<EntryView> | Iterable<EntryView>;
  /** A head that covers them. */
  readonly head?: AuditHead | null;
}

/**
 * The audit of the run that the query asks for: the one of its id, else the newest one with the expected call among at
 * most 100 that were created late enough, else the newest one.
 *
 * @param newestFirst the tenant's runs. Only as many are read as are needed
 */
export async function auditSelection(
  query: LedgerQuery,
  newestFirst: AsyncIterable<RunSource> | Iterable<RunSource>,
  options: FindingsOptions = {},
): Promise<AuditReport> {
  const selection = new RunSelection(query);
  for await (const source of newestFirst) {
    if (!selection.mayBe(source.run)) continue;
    const audit = new RunAudit(source.run, query, options);
    for await (const entry of source.entries()) audit.add(entry);
    const look = selection.look(source.run, audit);
    if (look === "this") return audit.finish(source.head ?? null);
    if (look === "none") break;
  }
  return auditReport({ ledger: noRun(query.toolName) });
}

/** The report where the arguments themselves are refused. */
export function refusedAudit(reason: string): AuditReport {
  return auditReport({ ledger: envIssue(reason) });
}
