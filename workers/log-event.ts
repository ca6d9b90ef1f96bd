/**
 * The service's own log lines: one JSON object a line, names and counts only, never a submitted value or a secret.
 *
 * @module
 */

/** Writes one line for the operator. */
export function logEvent(
  event: string,
  details: Readonly<Record<string, string | number | boolean>> = {},
): void {
  console.log(JSON.stringify({ event, ...details }));
}
