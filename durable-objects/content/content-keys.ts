/**
 * The content keys of a log, in its SQLite storage: one row for each content object in R2, never one for each entry; and
 * what is left of entries that were erased after they were sealed. docs/storage.md describes the tables.
 *
 * @module
 */

import { concat } from "../../shared/bytes.ts";
import type { EntryContent } from "../../shared/entry/erase.ts";
import type { Row } from "../tile-store/sql.ts";
import { blob, bytesOf, firstRow } from "../tile-store/sql.ts";
import { KEY_BYTES } from "./boxes.ts";

const SCHEMA = `
CREATE TABLE IF NOT EXISTS content_keys (
  first_seq INTEGER PRIMARY KEY, count INTEGER NOT NULL, name TEXT NOT NULL, keys BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS content_progress (one INTEGER PRIMARY KEY CHECK (one = 1), boxed_seq INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS content_left (seq INTEGER PRIMARY KEY, content TEXT, salts TEXT);
`;

/** Bytes of one key in a row: its entry's place in the object, 16 bits, and the key. */
const RECORD_BYTES = 2 + KEY_BYTES;

/** A content object, and the keys of its entries that have a value still. */
export interface ContentChunk {
  readonly firstSeq: number;
  readonly count: number;
  /** Name of the object under the log's prefix. */
  readonly name: string;
  /** By place in the object, from 0. */
  readonly keys: ReadonlyMap<number, Uint8Array>;
}

export class ContentKeys {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#sql.exec(SCHEMA);
  }

  /** Up to which entry all content is in R2: what is after it is in the segments alone, and in D1. */
  get boxedSeq(): number {
    return Number(firstRow(this.#sql, "SELECT boxed_seq FROM content_progress")?.boxed_seq ?? 0);
  }

  set boxedSeq(seq: number) {
    this.#sql.exec(
      `INSERT INTO content_progress (one, boxed_seq) VALUES (1, ?)
       ON CONFLICT (one) DO UPDATE SET boxed_seq = excluded.boxed_seq`,
      seq,
    );
  }

  /** Stores the keys of an object, before it is put. */
  add({ firstSeq, count, name, keys }: ContentChunk): void {
    this.#sql.exec(
      "INSERT INTO content_keys (first_seq, count, name, keys) VALUES (?, ?, ?, ?)",
      firstSeq,
      count,
      name,
      blob(encodeKeys(keys)),
    );
  }

  /** The object that the entry's content is, or will be, in; null where none was begun. */
  chunkOf(seq: number): ContentChunk | null {
    const row = firstRow(
      this.#sql,
      "SELECT * FROM content_keys WHERE first_seq <= ? ORDER BY first_seq DESC LIMIT 1",
      seq,
    );
    if (row === undefined || Number(row.first_seq) + Number(row.count) <= seq) return null;
    return chunkOf(row);
  }

  /**
   * Deletes the keys of what is sealed, or about to be, and notes what is left of it. Must run inside a storage transaction.
   *
   * @param left by sequence number, in order; entries that no object was begun for have no key yet
   */
  erase(left: ReadonlyMap<number, EntryContent>): void {
    let chunk: ContentChunk | null = null;
    let ofChunk = new Map<number, EntryContent>();
    const write = (): void => {
      if (chunk !== null && ofChunk.size > 0) this.#eraseOf(chunk, ofChunk);
      ofChunk = new Map();
    };
    for (const [seq, content] of left) {
      if (chunk === null || seq >= chunk.firstSeq + chunk.count) {
        write();
        chunk = this.chunkOf(seq);
      }
      if (chunk !== null) ofChunk.set(seq, content);
    }
    write();
  }

  #eraseOf(chunk: ContentChunk, left: ReadonlyMap<number, EntryContent>): void {
    const keys = new Map(chunk.keys);
    for (const [seq, { values, salts }] of left) {
      keys.delete(seq - chunk.firstSeq);
      this.#sql.exec(
        `INSERT INTO content_left (seq, content, salts) VALUES (?, ?, ?)
         ON CONFLICT (seq) DO UPDATE SET content = excluded.content, salts = excluded.salts`,
        seq,
        values,
        salts,
      );
    }
    if (keys.size === chunk.keys.size) return;
    this.#sql.exec(
      "UPDATE content_keys SET keys = ? WHERE first_seq = ?",
      blob(encodeKeys(keys)),
      chunk.firstSeq,
    );
  }

  /** What is left of an entry that was erased after it was sealed; null where it was not. */
  left(seq: number): EntryContent | null {
    const row = firstRow(this.#sql, "SELECT content, salts FROM content_left WHERE seq = ?", seq);
    return row === undefined ? null : leftOf(row);
  }

  /** The same of a range of entries, by sequence number. */
  leftBetween(first: number, last: number): ReadonlyMap<number, EntryContent> {
    const rows = this.#sql.exec<Row>(
      "SELECT seq, content, salts FROM content_left WHERE seq BETWEEN ? AND ?",
      first,
      last,
    );
    return new Map(rows.toArray().map((row) => [Number(row.seq), leftOf(row)]));
  }
}

function leftOf(row: Row): EntryContent {
  return { values: textOf(row.content), salts: textOf(row.salts) };
}

function textOf(value: SqlStorageValue | undefined): string | null {
  return typeof value === "string" ? value : null;
}

function chunkOf(row: Row): ContentChunk {
  const bytes = bytesOf(row.keys);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const keys = new Map<number, Uint8Array>();
  for (let at = 0; at < bytes.length; at += RECORD_BYTES) {
    keys.set(view.getUint16(at, true), bytes.subarray(at + 2, at + RECORD_BYTES));
  }
  return { firstSeq: Number(row.first_seq), count: Number(row.count), name: String(row.name), keys };
}

function encodeKeys(keys: ReadonlyMap<number, Uint8Array>): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const [place, key] of keys) parts.push(new Uint8Array([place & 0xff, place >> 8]), key);
  return concat(...parts);
}
