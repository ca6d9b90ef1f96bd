/**
 * What a tenant's directory knows of the index: the arrival in D1 that it was last told of, and how far a rebuild of the
 * index has got.
 *
 * D1's history is one line. A log that D1 has caught up with tells when its last rows arrived there; the newest of these
 * arrivals is kept as the witness. Where D1 still has the witness it has all that came before it, too, and so the rows
 * of every log at rest. Where it does not, it went backwards: then every log is asked to fill it again, and until the
 * last one has, nobody reads the whole tenant. A log that finds D1 behind says so here before it fills it again, so that
 * the witness alone is never put back in its place; and a newer arrival becomes the witness only where D1 still has the
 * one before.
 *
 * @module
 */
import { addColumn } from "../tile-store/sql.ts";

type Row = Record<string, SqlStorageValue>;

/** When rows arrived in D1, by D1's own clock and the tenant's arrival counter there. */
export interface Arrival {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** The counter after them. */
  readonly pos: number;
}

/** A log, by its ids. */
export interface LogKey {
  /** 16 bytes of hex. */
  readonly principal: string;
  readonly generation: number;
}

/** D1 holds this log up to `seq`, unless it went backwards. */
export interface IndexWitness extends LogKey {
  readonly seq: number;
}

/** Whether both name the same log. */
export function isSameLog(a: LogKey, b: LogKey): boolean {
  return a.principal === b.principal && a.generation === b.generation;
}

/** A log in the order of a rebuild. */
export interface NamedLog extends LogKey {
  readonly name: string;
}

/** A step through what comes after the logs (workers/logs/restore-copies.ts): where it began, and where it ended. */
export interface CopyStep {
  readonly from: string;
  readonly copiesAfter: string;
  /** Objects that it refused. */
  readonly refused: number;
}

/** How far a rebuild has got: with its logs, or with what comes after them. */
export type RebuildPlace = Pick<NamedLog, "name" | "generation"> | CopyStep;

/** How a rebuild stands once its last step is made. */
export interface Rebuilt {
  /** False where it was begun anew meanwhile. */
  readonly ended: boolean;
  /** Objects that all its steps refused, whoever made them. */
  readonly refused: number;
}

export interface RebuildPage {
  /** Which rebuild this is: one that began anew goes by another number. */
  readonly round: number;
  readonly logs: readonly NamedLog[];
  /** Whether more logs follow. */
  readonly more: boolean;
  /** Where what comes after the logs goes on; "" where it has not begun. */
  readonly copiesAfter: string;
}

export class IndexState {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(`
      CREATE TABLE IF NOT EXISTS index_witness (
        one INTEGER PRIMARY KEY CHECK (one = 1), principal TEXT NOT NULL, generation INTEGER NOT NULL,
        seq INTEGER NOT NULL, at INTEGER NOT NULL, pos INTEGER NOT NULL);
      CREATE TABLE IF NOT EXISTS index_rebuild (
        one INTEGER PRIMARY KEY CHECK (one = 1), round INTEGER NOT NULL, running INTEGER NOT NULL,
        name TEXT NOT NULL, generation INTEGER NOT NULL);
      CREATE TABLE IF NOT EXISTS index_copies (
        one INTEGER PRIMARY KEY CHECK (one = 1), round INTEGER NOT NULL, after TEXT NOT NULL,
        refused INTEGER NOT NULL DEFAULT 0);
    `);
    addColumn(sql, "index_copies", "refused", "INTEGER NOT NULL DEFAULT 0");
  }

  witness(): IndexWitness | null {
    const row = this.#first("SELECT principal, generation, seq FROM index_witness");
    return row === undefined
      ? null
      : { principal: String(row.principal), generation: Number(row.generation), seq: Number(row.seq) };
  }

  /** Takes the arrival for the witness, if it is not older than the one that is. */
  arrived(log: LogKey, seq: number, arrival: Arrival): void {
    this.#sql.exec(
      `INSERT INTO index_witness VALUES (1, ?1, ?2, ?3, ?4, ?5) ON CONFLICT (one) DO UPDATE SET
         principal = ?1, generation = ?2, seq = ?3, at = ?4, pos = ?5 WHERE ?4 > at OR (?4 = at AND ?5 >= pos)`,
      log.principal,
      log.generation,
      seq,
      arrival.at,
      arrival.pos,
    );
  }

  get rebuilding(): boolean {
    return Number(this.#first("SELECT running FROM index_rebuild")?.running ?? 0) === 1;
  }

  /** Begins a rebuild, or begins it anew. What was known of arrivals is of a history that D1 no longer has. */
  startRebuild(): void {
    this.#sql.exec(
      `INSERT INTO index_rebuild VALUES (1, 1, 1, '', 0)
       ON CONFLICT (one) DO UPDATE SET round = round + 1, running = 1, name = '', generation = 0`,
    );
    this.#sql.exec("DELETE FROM index_witness");
  }

  /** The logs that come next in the rebuild, by name and generation; null where none runs. */
  rebuildPage(limit: number): RebuildPage | null {
    const state = this.#first("SELECT * FROM index_rebuild WHERE running = 1");
    if (state === undefined) return null;
    const round = Number(state.round);
    const copiesAfter = this.#copiesAfter(round);
    const logs: NamedLog[] = [];
    for (const row of this.#sql.exec<Row>(
      "SELECT name, id, generation FROM principals WHERE name >= ? ORDER BY name",
      state.name ?? "",
    )) {
      const from = row.name === state.name ? Number(state.generation) + 1 : 1;
      for (let generation = from; generation <= Number(row.generation); generation++) {
        if (logs.length === limit) return { round, logs, more: true, copiesAfter };
        logs.push({ name: String(row.name), principal: String(row.id), generation });
      }
    }
    return { round, logs, more: false, copiesAfter };
  }

  /** Notes that the rebuild is through with everything up to this place. */
  rebuilt(round: number, upTo: RebuildPlace): void {
    if ("copiesAfter" in upTo) {
      this.#copied(round, upTo);
      return;
    }
    this.#sql.exec(
      "UPDATE index_rebuild SET name = ?, generation = ? WHERE round = ? AND running = 1",
      upTo.name,
      upTo.generation,
      round,
    );
  }

  /** Ends the rebuild with its last step, unless it was begun anew. */
  endRebuild(round: number, witness: (IndexWitness & Arrival) | null, last: CopyStep): Rebuilt {
    const state = this.#first("SELECT running FROM index_rebuild WHERE round = ?", round);
    if (state === undefined) return { ended: false, refused: 0 };
    if (Number(state.running) === 1) {
      this.#copied(round, last);
      this.#sql.exec("UPDATE index_rebuild SET running = 0 WHERE round = ?", round);
      if (witness !== null) this.arrived(witness, witness.seq, witness);
    }
    return { ended: true, refused: this.refused };
  }

  /** Objects that the rebuild has refused, the one that runs or the last one. */
  get refused(): number {
    const row = this.#first("SELECT c.refused FROM index_copies c JOIN index_rebuild r ON r.round = c.round");
    return Number(row?.refused ?? 0);
  }

  #copiesAfter(round: number): string {
    return String(this.#first("SELECT after FROM index_copies WHERE round = ?", round)?.after ?? "");
  }

  /** Takes a step through the copies, once: of two who made the same one the second changes nothing. */
  #copied(round: number, { from, copiesAfter, refused }: CopyStep): void {
    if (this.#first("SELECT 1 FROM index_rebuild WHERE round = ? AND running = 1", round) === undefined)
      return;
    if (this.#copiesAfter(round) !== from) return;
    this.#sql.exec(
      `INSERT INTO index_copies (one, round, after, refused) VALUES (1, ?1, ?2, ?3) ON CONFLICT (one) DO UPDATE SET
         refused = CASE WHEN round = ?1 THEN refused ELSE 0 END + ?3, round = ?1, after = ?2`,
      round,
      copiesAfter,
      refused,
    );
  }

  #first(query: string, ...bindings: SqlStorageValue[]): Row | undefined {
    for (const row of this.#sql.exec<Row>(query, ...bindings)) return row;
    return undefined;
  }
}
