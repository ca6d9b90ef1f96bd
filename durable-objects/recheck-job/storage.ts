/**
 * What a job keeps in its SQLite storage. Its tables are made when it is started: an id that nobody gave out leaves
 * nothing behind.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { hashText } from "../../shared/recheck/hash.ts";
import { RecheckSummary, type SummaryState } from "../../shared/recheck/summary.ts";
import { firstRow, type Row } from "../tile-store/sql.ts";
import type { JobLog, JobRequest, JobStatus } from "./types.ts";

/** Where the job is: everything that moves. */
export interface JobState {
  readonly status: JobStatus;
  /** How the job ends, once that is decided; "" before. */
  readonly end: JobStatus | "";
  readonly reason: string;
  /** Name of the last principal whose log was looked at while resolving. */
  readonly resolved: string;
  /** Number of the log that is being re-checked, and its last run that is done. */
  readonly log: number;
  readonly run: string;
  readonly runsDone: number;
  readonly evaluations: number;
  /** Lines of runs so far, and their hash: each line is hashed with the hash before it. */
  readonly lines: number;
  readonly linesHash: string;
  /** Milliseconds of work. */
  readonly spentMs: number;
  /** Slices in a row that came to nothing. */
  readonly attempts: number;
  /** How often the next run was begun. */
  readonly tries: number;
  readonly finishedAt: string | null;
  readonly reportHash: string | null;
  /** Whether the index of jobs knows the end. */
  readonly listed: boolean;
}

/** A run of the selection's newest. */
export interface PickedRun {
  readonly run: string;
  /** Nanoseconds, as decimal text. */
  readonly at: string;
}

const FRESH: JobState = {
  status: "resolving",
  end: "",
  reason: "",
  resolved: "",
  log: 1,
  run: "",
  runsDone: 0,
  evaluations: 0,
  lines: 0,
  linesHash: "00".repeat(32),
  spentMs: 0,
  attempts: 0,
  tries: 0,
  finishedAt: null,
  reportHash: null,
  listed: false,
};

export class JobStorage {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#sql = storage.sql;
  }

  /** Whether a job was ever started here. */
  get exists(): boolean {
    return firstRow(this.#sql, "SELECT 1 FROM sqlite_master WHERE name = 'job'") !== undefined;
  }

  create(request: JobRequest): void {
    this.#storage.transactionSync(() => {
      this.#sql.exec(`
        CREATE TABLE job (one INTEGER PRIMARY KEY CHECK (one = 1), request TEXT NOT NULL, state TEXT NOT NULL, summary TEXT NOT NULL);
        CREATE TABLE logs (n INTEGER PRIMARY KEY, record TEXT NOT NULL);
        CREATE TABLE picked (log INTEGER NOT NULL, run TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (log, run)) WITHOUT ROWID;
        CREATE TABLE lines (n INTEGER PRIMARY KEY, differs INTEGER NOT NULL, text TEXT NOT NULL);
      `);
      const { policyId, specSource } = request.policy;
      const summary = new RecheckSummary({ policyId, specSource }).state();
      this.#sql.exec(
        "INSERT INTO job VALUES (1, ?, ?, ?)",
        JSON.stringify(request),
        JSON.stringify(FRESH),
        JSON.stringify(summary),
      );
    });
  }

  request(): JobRequest {
    return JSON.parse(String(this.#job("request"))) as JobRequest;
  }

  state(): JobState {
    return JSON.parse(String(this.#job("state"))) as JobState;
  }

  summary(): SummaryState {
    return JSON.parse(this.summaryText()) as SummaryState;
  }

  summaryText(): string {
    return String(this.#job("summary"));
  }

  /** Changes members of the state. */
  move(change: Partial<JobState>): JobState {
    const state = { ...this.state(), ...change };
    this.#sql.exec("UPDATE job SET state = ?", JSON.stringify(state));
    return state;
  }

  /** A log whose bounds are fixed, with its newest runs where only those count; the place of the next one. */
  addLog(log: JobLog, picked: readonly PickedRun[], newest: number | null): void {
    const n = this.logCount() + 1;
    this.#sql.exec("INSERT INTO logs VALUES (?, ?)", n, JSON.stringify(log));
    for (const { run, at } of picked) {
      // Padded, so that the order of texts is that of numbers.
      this.#sql.exec("INSERT INTO picked VALUES (?, ?, ?)", n, run, at.padStart(20, "0"));
    }
    if (newest === null) return;
    this.#sql.exec(
      "DELETE FROM picked WHERE (log, run) IN (SELECT log, run FROM picked ORDER BY at DESC, log, run LIMIT -1 OFFSET ?)",
      newest,
    );
  }

  log(n: number): JobLog | null {
    const row = firstRow(this.#sql, "SELECT record FROM logs WHERE n = ?", n);
    return row === undefined ? null : (JSON.parse(String(row.record)) as JobLog);
  }

  logCount(): number {
    return Number(firstRow(this.#sql, "SELECT count(*) AS n FROM logs")?.n ?? 0);
  }

  *logs(limit = -1): Generator<JobLog> {
    for (const row of this.#sql.exec<Row>("SELECT record FROM logs ORDER BY n LIMIT ?", limit)) {
      yield JSON.parse(String(row.record)) as JobLog;
    }
  }

  /** Runs that were picked from a log, after one, by name. */
  picked(log: number, after: string, limit: number): string[] {
    return this.#sql
      .exec<Row>("SELECT run FROM picked WHERE log = ? AND run > ? ORDER BY run LIMIT ?", log, after, limit)
      .toArray()
      .map(({ run }) => String(run));
  }

  pickedCount(log: number | null = null): number {
    const where = log === null ? "" : " WHERE log = ?";
    const values = log === null ? [] : [log];
    return Number(firstRow(this.#sql, `SELECT count(*) AS n FROM picked${where}`, ...values)?.n ?? 0);
  }

  /** Stores what one run came to: its line, the sum and the place, all together or not at all. */
  commitRun(
    change: Partial<JobState>,
    summary: SummaryState,
    line: { text: string; differs: boolean },
  ): void {
    this.#storage.transactionSync(() => {
      const before = this.state();
      const lines = before.lines + 1;
      const linesHash = hashText(nativeCrypto, `${before.linesHash}\n${line.text}\n`);
      const state: JobState = { ...before, ...change, lines, linesHash };
      this.#sql.exec("INSERT INTO lines VALUES (?, ?, ?)", lines, line.differs ? 1 : 0, line.text);
      this.#sql.exec("UPDATE job SET state = ?, summary = ?", JSON.stringify(state), JSON.stringify(summary));
    });
  }

  transaction<T>(work: () => T): T {
    return this.#storage.transactionSync(work);
  }

  /** Lines after number `after`, about `bytes` of them. */
  *lines(after: number, all: boolean): Generator<{ n: number; text: string }> {
    const rows = this.#sql.exec<Row>(
      `SELECT n, text FROM lines WHERE n > ?${all ? "" : " AND differs = 1"} ORDER BY n`,
      after,
    );
    for (const { n, text } of rows) yield { n: Number(n), text: String(text) };
  }

  #job(column: "request" | "state" | "summary"): SqlStorageValue | undefined {
    return firstRow(this.#sql, `SELECT ${column} FROM job`)?.[column];
  }
}
