/**
 * Small things that every SQLite storage of a log needs.
 *
 * @module
 */

export type Row = Record<string, SqlStorageValue>;

/** The bytes of a blob column; none for anything else. */
export function bytesOf(value: SqlStorageValue | undefined): Uint8Array {
  return value instanceof ArrayBuffer ? new Uint8Array(value) : new Uint8Array();
}

/** A view's bytes as a buffer of their own, as the SQL API takes blobs. */
export function blob(bytes: Uint8Array): ArrayBuffer {
  const whole = bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice();
  return whole.buffer as ArrayBuffer;
}

/** The first row of a query, or undefined. */
export function firstRow(sql: SqlStorage, query: string, ...bindings: SqlStorageValue[]): Row | undefined {
  // One call into the runtime: an iterator over the cursor takes several, and each of them longer than the query.
  return sql.exec<Row>(query, ...bindings).toArray()[0];
}

/** Adds a column that a table made by an earlier version lacks. */
export function addColumn(sql: SqlStorage, table: string, column: string, type: string): void {
  if (firstRow(sql, "SELECT 1 FROM pragma_table_info(?) WHERE name = ?", table, column) === undefined)
    sql.exec(`ALTER TABLE ${table} ADD COLUMN ${column} ${type}`);
}
