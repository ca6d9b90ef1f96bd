/**
 * Scopes of an API key. A key has the scopes it was given and no others.
 *
 * @module
 */

export const SCOPES = [
  "create",
  "read",
  "ingest",
  "verify",
  "recheck",
  "policy",
  "keys",
  "admin",
  "anchor",
] as const;
export type Scope = (typeof SCOPES)[number];

/** Whether the text names a scope. */
export function isScope(text: string): text is Scope {
  return (SCOPES as readonly string[]).includes(text);
}
