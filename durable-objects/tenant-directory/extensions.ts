/**
 * What a tenant declared of kinds of its own: every version under each prefix, and the one that holds. A version is
 * taken here first, then recorded on the tenant's `$system` log, and only then does it hold.
 *
 * @module
 */
import type { Row } from "../tile-store/sql.ts";
import { firstRow } from "../tile-store/sql.ts";

/** Prefixes of a tenant. */
export const MAX_PREFIXES = 16;
/** Versions under a prefix. */
export const MAX_VERSIONS = 1000;

export interface DeclaredVersion {
  readonly prefix: string;
  readonly version: number;
  /** Hex SHA-256 of the text. */
  readonly hash: string;
  /** RFC 3339. */
  readonly createdAt: string;
}

export interface StoredDeclaration extends DeclaredVersion {
  /** Canonical JSON. */
  readonly text: string;
}

/** The version that this content has; or what there would be too many of. */
export type TakenVersion =
  | { readonly version: number; readonly createdAt: string; readonly holds: boolean }
  | { readonly refused: "prefixes" | "versions" };

const SCHEMA = `
CREATE TABLE IF NOT EXISTS extensions (prefix TEXT PRIMARY KEY, holds INTEGER NOT NULL, highest INTEGER NOT NULL)
  WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS extension_versions (
  prefix TEXT NOT NULL, version INTEGER NOT NULL, hash TEXT NOT NULL, created_at TEXT NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (prefix, version));
`;
const VERSION = "SELECT * FROM extension_versions WHERE prefix = ? AND version = ?";

export class ExtensionBook {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(SCHEMA);
  }

  /** Those that hold, by prefix. */
  list(): StoredDeclaration[] {
    return [
      ...this.#sql.exec<Row>(
        `SELECT v.* FROM extensions e JOIN extension_versions v ON v.prefix = e.prefix AND v.version = e.holds
         ORDER BY e.prefix`,
      ),
    ].map(declarationOf);
  }

  /** The version that holds under the prefix, or one that held; null where there is none. */
  find(prefix: string, version: number | null): StoredDeclaration | null {
    const holds = Number(this.#of(prefix)?.holds ?? 0);
    // A version that was taken and is above is not recorded yet: nobody sees it.
    const asked = version ?? holds;
    const row = asked > holds ? undefined : firstRow(this.#sql, VERSION, prefix, asked);
    return row === undefined ? null : declarationOf(row);
  }

  /**
   * Takes a version for a content: the highest one where that has it, else the next one. Must run inside a transaction.
   *
   * @param least the version is at least this
   */
  take({ prefix, hash, text, createdAt }: Omit<StoredDeclaration, "version">, least: number): TakenVersion {
    const there = this.#of(prefix);
    const highest = Number(there?.highest ?? 0);
    const last = firstRow(this.#sql, VERSION, prefix, highest);
    if (last?.hash === hash && highest >= least)
      return { version: highest, createdAt: String(last.created_at), holds: there?.holds === highest };
    const version = Math.max(highest + 1, least);
    if (version > MAX_VERSIONS) return { refused: "versions" };
    if (there === undefined) {
      const count = Number(firstRow(this.#sql, "SELECT count(*) AS n FROM extensions")?.n ?? 0);
      if (count >= MAX_PREFIXES) return { refused: "prefixes" };
    }
    this.#sql.exec(
      "INSERT INTO extensions VALUES (?, 0, ?) ON CONFLICT (prefix) DO UPDATE SET highest = excluded.highest",
      prefix,
      version,
    );
    this.#sql.exec(
      "INSERT INTO extension_versions VALUES (?, ?, ?, ?, ?)",
      prefix,
      version,
      hash,
      createdAt,
      text,
    );
    return { version, createdAt, holds: false };
  }

  /** Lets a version hold, unless a higher one does. Must run inside a transaction. */
  hold(prefix: string, version: number): boolean {
    if (Number(this.#of(prefix)?.holds ?? version) >= version) return false;
    this.#sql.exec("UPDATE extensions SET holds = ? WHERE prefix = ?", version, prefix);
    return true;
  }

  #of(prefix: string): Row | undefined {
    return firstRow(this.#sql, "SELECT * FROM extensions WHERE prefix = ?", prefix);
  }
}

function declarationOf(row: Row): StoredDeclaration {
  return {
    prefix: String(row.prefix),
    version: Number(row.version),
    hash: String(row.hash),
    createdAt: String(row.created_at),
    text: String(row.text),
  };
}
