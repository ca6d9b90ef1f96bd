/**
 * What the service's log knows of its witnesses, one row each. docs/storage.md describes the table.
 *
 * @module
 */
import type { Row } from "../tile-store/sql.ts";
import { firstRow } from "../tile-store/sql.ts";
import type { WitnessOutcome } from "./witnesses.ts";

export interface WitnessState {
  /** The witness' key in text form, which names it. */
  readonly vkey: string;
  /** The size that it has of the log, as far as is known. */
  readonly known: number;
  /** How the last submission ended; null before the first. */
  readonly outcome: WitnessOutcome | null;
  /** Milliseconds since the epoch, as all times here: when that was; 0 for never. */
  readonly askedAtMs: number;
  /** Not to be asked before. */
  readonly nextAtMs: number;
  /** Submissions in a row that gave no cosignature. */
  readonly failures: number;
  /** Size of the last head that it cosigned; 0 for none. */
  readonly cosignedSize: number;
  readonly cosignedAtMs: number;
  /** That head as it was submitted, and the witness' signature line on it; empty for none. */
  readonly checkpoint: string;
  readonly cosignature: string;
}

const NEW: Omit<WitnessState, "vkey"> = {
  known: 0,
  outcome: null,
  askedAtMs: 0,
  nextAtMs: 0,
  failures: 0,
  cosignedSize: 0,
  cosignedAtMs: 0,
  checkpoint: "",
  cosignature: "",
};

export class WitnessStorage {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#sql.exec(`CREATE TABLE IF NOT EXISTS witnesses (
      vkey TEXT PRIMARY KEY, known INTEGER NOT NULL, outcome TEXT, asked_at_ms INTEGER NOT NULL,
      next_at_ms INTEGER NOT NULL, failures INTEGER NOT NULL, cosigned_size INTEGER NOT NULL,
      cosigned_at_ms INTEGER NOT NULL, checkpoint TEXT NOT NULL, cosignature TEXT NOT NULL) WITHOUT ROWID`);
  }

  get(vkey: string): WitnessState {
    const row: Row | undefined = firstRow(this.#sql, "SELECT * FROM witnesses WHERE vkey = ?", vkey);
    if (row === undefined) return { vkey, ...NEW };
    return {
      vkey,
      known: Number(row.known),
      outcome: row.outcome === null ? null : (String(row.outcome) as WitnessOutcome),
      askedAtMs: Number(row.asked_at_ms),
      nextAtMs: Number(row.next_at_ms),
      failures: Number(row.failures),
      cosignedSize: Number(row.cosigned_size),
      cosignedAtMs: Number(row.cosigned_at_ms),
      checkpoint: String(row.checkpoint),
      cosignature: String(row.cosignature),
    };
  }

  set(state: WitnessState): void {
    this.#sql.exec(
      "INSERT OR REPLACE INTO witnesses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      state.vkey,
      state.known,
      state.outcome,
      state.askedAtMs,
      state.nextAtMs,
      state.failures,
      state.cosignedSize,
      state.cosignedAtMs,
      state.checkpoint,
      state.cosignature,
    );
  }
}
