/**
 * Tells a row that D1 does not take from a D1 that is away.
 *
 * @module
 */

/** Whether D1 refuses the row itself, too long or against a constraint: to send it again does not help. */
export function isRefusedRow(error: unknown): boolean {
  return error instanceof Error && /\bSQLITE_(?:TOOBIG|CONSTRAINT|MISMATCH)/.test(error.message);
}
