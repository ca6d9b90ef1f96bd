/**
 * What a re-check reads and keeps at most (docs/recheck.md, "Limits").
 *
 * @module
 */

/** Code points of one record's text that are kept: agentrt's MaxPageText. */
export const MAX_PAGE_TEXT = 65_536;

/** Approvals of a run that are read whole; an evaluation whose view counted more is not re-checkable. */
export const MAX_APPROVALS = 1_024;

/** UTF-16 units of text kept of one run: with two bytes a unit it fills half of a Worker's 128 MB. */
export const MAX_RUN_TEXT = 33_554_432;

/** UTF-8 bytes of a policy's identity. */
export const MAX_POLICY_ID_BYTES = 256;

/** Whether the texts together are longer than a page carries, in code points. */
export function exceedsPage(...texts: readonly string[]): boolean {
  let units = 0;
  for (const text of texts) units += text.length;
  if (units <= MAX_PAGE_TEXT) return false;
  if (units > 2 * MAX_PAGE_TEXT) return true;
  let points = 0;
  for (const text of texts) {
    for (const _ of text) points++;
  }
  return points > MAX_PAGE_TEXT;
}
