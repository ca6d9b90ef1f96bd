/**
 * What a tenant's log of heads keeps beside the heads: the last head of each log that is known to be kept elsewhere, and
 * whether heads answer without a key. docs/storage.md describes each table.
 *
 * @module
 */
import type { Row } from "../tile-store/sql.ts";
import { firstRow } from "../tile-store/sql.ts";

/** The last head of a log that somebody keeps elsewhere. */
export interface Anchor {
  /** Hex; of the tenant's log itself, the registry id. */
  readonly logId: string;
  readonly size: number;
  /** Hex. */
  readonly root: string;
  /** The note that is kept. */
  readonly checkpoint: string;
  /** Where, in the caller's words. */
  readonly where: string;
  /** What was got for it there; null for nothing. */
  readonly receipt: string | null;
  /** The API key that said so. */
  readonly by: string;
  readonly anchoredAtMs: number;
}

const SCHEMA = `
CREATE TABLE IF NOT EXISTS anchors (
  log_id TEXT PRIMARY KEY, size INTEGER NOT NULL, root TEXT NOT NULL, checkpoint TEXT NOT NULL, place TEXT NOT NULL,
  receipt TEXT, by TEXT NOT NULL, anchored_at_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS public_heads (one INTEGER PRIMARY KEY CHECK (one = 1), enabled INTEGER NOT NULL);
`;

export class AnchorStorage {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#sql.exec(SCHEMA);
  }

  get(logId: string): Anchor | null {
    const row: Row | undefined = firstRow(this.#sql, "SELECT * FROM anchors WHERE log_id = ?", logId);
    if (row === undefined) return null;
    return {
      logId,
      size: Number(row.size),
      root: String(row.root),
      checkpoint: String(row.checkpoint),
      where: String(row.place),
      receipt: row.receipt === null ? null : String(row.receipt),
      by: String(row.by),
      anchoredAtMs: Number(row.anchored_at_ms),
    };
  }

  set(anchor: Anchor): void {
    this.#sql.exec(
      "INSERT OR REPLACE INTO anchors VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
      anchor.logId,
      anchor.size,
      anchor.root,
      anchor.checkpoint,
      anchor.where,
      anchor.receipt,
      anchor.by,
      anchor.anchoredAtMs,
    );
  }

  publicHeads(): boolean {
    return Number(firstRow(this.#sql, "SELECT enabled FROM public_heads")?.enabled ?? 0) === 1;
  }

  setPublicHeads(enabled: boolean): void {
    this.#sql.exec("INSERT OR REPLACE INTO public_heads VALUES (1, ?)", enabled ? 1 : 0);
  }
}
