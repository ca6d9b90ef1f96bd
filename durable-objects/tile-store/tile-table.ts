/**
 * The hash tiles of one log in SQLite: full ones, and the partial ones of the upper levels.
 *
 * @module
 */
import { HASH_BYTES } from "../../shared/merkle/hash.ts";
import { TILE_WIDTH } from "../../shared/merkle/tiles.ts";
import { blob, bytesOf, firstRow } from "./sql.ts";

/** Where a tree keeps its tiles. */
export interface TileStore {
  /** The hashes of a tile, as far as it is filled; null where there is none. */
  tile(level: number, tile: number): Uint8Array | null;
  setTile(level: number, tile: number, hashes: Uint8Array): void;
}

export class TileTable implements TileStore {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#sql.exec(`CREATE TABLE IF NOT EXISTS tiles (
      level INTEGER NOT NULL, tile INTEGER NOT NULL, hashes BLOB NOT NULL, PRIMARY KEY (level, tile)) WITHOUT ROWID`);
  }

  tile(level: number, tile: number): Uint8Array | null {
    const query = "SELECT hashes FROM tiles WHERE level = ? AND tile = ?";
    const row = firstRow(this.#sql, query, level, tile);
    return row === undefined ? null : bytesOf(row.hashes);
  }

  /** Cuts the tiles to those of a tree of this size. */
  cut(size: number): void {
    const levels = firstRow(this.#sql, "SELECT max(level) AS level FROM tiles");
    for (let level = 0; level <= Number(levels?.level ?? -1); level++) {
      const nodes = Math.floor(size / TILE_WIDTH ** level);
      const last = Math.floor(nodes / TILE_WIDTH);
      // The lowest level keeps its full tiles only: the partial one is in memory.
      const width = level === 0 ? 0 : nodes % TILE_WIDTH;
      const kept = width === 0 ? null : this.tile(level, last);
      this.#sql.exec("DELETE FROM tiles WHERE level = ? AND tile >= ?", level, last);
      if (kept !== null) this.setTile(level, last, kept.slice(0, width * HASH_BYTES));
    }
  }

  setTile(level: number, tile: number, hashes: Uint8Array): void {
    this.#sql.exec(
      `INSERT INTO tiles (level, tile, hashes) VALUES (?, ?, ?)
       ON CONFLICT (level, tile) DO UPDATE SET hashes = excluded.hashes`,
      level,
      tile,
      blob(hashes),
    );
  }
}
