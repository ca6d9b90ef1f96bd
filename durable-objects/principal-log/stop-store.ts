/**
 * Why a log is stopped, that its generation is sealed, and what is still to be written about it on the tenant's system
 * log: in the log's own storage.
 *
 * @module
 */
import type { Row } from "../tile-store/sql.ts";
import { firstRow } from "../tile-store/sql.ts";

/** A head as evidence. */
export interface HeadEvidence {
  readonly size: number;
  /** Hex. */
  readonly root: string;
  /** Hash of the last leaf, hex; where it is known. */
  readonly hash?: string;
  /** The signed note. */
  readonly checkpoint: string;
}

/** What was found when the log was stopped. */
export interface StopRecord {
  /** The mirror is ahead of the log, or holds a head of another log or history, or another object in a tile's place. */
  readonly kind: "ahead" | "fork" | "object";
  /** In a sentence. */
  readonly detail: string;
  /** Milliseconds since the epoch. */
  readonly atMs: number;
  readonly stored: HeadEvidence | null;
  /** The mirrored head as it was then, where it could be read. */
  readonly mirrored: HeadEvidence | null;
}

/** The end of a generation. */
export interface SealRecord extends StopRecord {
  /** Why, in the operator's words. */
  readonly reason: string;
  readonly sealedAtMs: number;
}

/** An entry for the tenant's system log. */
export interface Notice {
  readonly id: string;
  readonly kind: string;
  readonly action: Readonly<Record<string, unknown>>;
}

export class StopStore {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(`
      CREATE TABLE IF NOT EXISTS stop (
        one INTEGER PRIMARY KEY CHECK (one = 1), record TEXT NOT NULL, seal TEXT);
      CREATE TABLE IF NOT EXISTS notices (id TEXT PRIMARY KEY, kind TEXT NOT NULL, action TEXT NOT NULL) WITHOUT ROWID;
    `);
  }

  /** What was found first; null for a log that runs. */
  stopped(): StopRecord | null {
    const row = this.#row();
    return row === undefined ? null : (JSON.parse(String(row.record)) as StopRecord);
  }

  setStopped(record: StopRecord): void {
    this.#sql.exec("INSERT INTO stop VALUES (1, ?, NULL) ON CONFLICT DO NOTHING", JSON.stringify(record));
  }

  sealed(): SealRecord | null {
    const seal = this.#row()?.seal;
    return typeof seal === "string" ? (JSON.parse(seal) as SealRecord) : null;
  }

  /** Once: the first seal stands. */
  setSealed(seal: SealRecord): void {
    this.#sql.exec("UPDATE stop SET seal = ? WHERE seal IS NULL", JSON.stringify(seal));
  }

  addNotice({ id, kind, action }: Notice): void {
    this.#sql.exec(
      "INSERT INTO notices VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
      id,
      kind,
      JSON.stringify(action),
    );
  }

  notices(): Notice[] {
    return [...this.#sql.exec<Row>("SELECT * FROM notices ORDER BY id")].map((row) => ({
      id: String(row.id),
      kind: String(row.kind),
      action: JSON.parse(String(row.action)) as Notice["action"],
    }));
  }

  dropNotice(id: string): void {
    this.#sql.exec("DELETE FROM notices WHERE id = ?", id);
  }

  #row(): Row | undefined {
    return firstRow(this.#sql, "SELECT record, seal FROM stop");
  }
}
