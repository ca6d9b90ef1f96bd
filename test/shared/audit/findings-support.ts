/**
 * What the tests of the findings share: looking for findings in entries, and the entries of a call that needs consent.
 *
 * @module
 */
import type { FindingKind } from "../../../shared/audit/finding.ts";
import { type FindingsOptions, RunFindings } from "../../../shared/audit/findings.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import type { EntryView } from "../../../shared/entry/view.ts";
import { canonicalJson } from "../../../shared/json/canonical.ts";
import { approvalHash, contentHash } from "../../../shared/recheck/hash.ts";
import type { Parts } from "./support.ts";

export const H = "cd".repeat(32);
/** Another hash than `H`. */
export const OTHER_H = "ef".repeat(32);

/** What is found in the entries of run `r1`, by default with the whole log as context. */
export function listOf(entries: readonly EntryView[], options: FindingsOptions = { context: "log" }) {
  const findings = new RunFindings("r1", options);
  for (const entry of entries) findings.add(entry);
  return findings.finish();
}

/** Kind and seqs of each finding. */
export function found(
  entries: readonly EntryView[],
  options?: FindingsOptions,
): [FindingKind, ...number[]][] {
  return listOf(entries, options).findings.map(({ kind, entries: named }) => [
    kind,
    ...named.map(({ seq }) => seq),
  ]);
}

/** A tool spec, and what an approval of a call of it is. */
export const SPEC = canonicalJson(
  '{"name":"publish","description":"d","input_schema":{"type":"object"},"side_effect":"remote_mutation","timeout":1}',
);
export const SPEC_HASH = contentHash(pureCrypto, SPEC);
export const specs = (hash: string): string | undefined => (hash === SPEC_HASH ? SPEC : undefined);
export const ARGS = { n: 1 };
export const CAPABILITY = { tool: "publish", args: ARGS };
export const HASH = approvalHash(pureCrypto, {
  kind: "remote_mutation",
  capability: canonicalJson(JSON.stringify(CAPABILITY)),
  presentation: canonicalJson(JSON.stringify(CAPABILITY)),
  runId: "r1",
  stepId: "s1",
  spec: SPEC,
  args: canonicalJson(JSON.stringify(ARGS)),
});

export const requested = (more: Partial<Parts> = {}): Parts => ({
  step: "s1",
  ...more,
  action: {
    approval_id: "a1",
    kind: "remote_mutation",
    capability: CAPABILITY,
    presentation: CAPABILITY,
    hash: HASH,
    ...more.action,
  },
});
export const decided = (more: Partial<Parts> = {}): Parts => ({
  step: "s1",
  ...more,
  action: { approval_id: "a1", by: "op", ...more.action },
});
export const called = (more: Partial<Parts> = {}): Parts => ({
  step: "s1",
  ...more,
  action: { tool: "publish", args: ARGS, ...more.action },
});
export const evaluated = (outcome: string, more: Partial<Parts> = {}): Parts => ({
  step: "s1",
  ...more,
  action: { tool: "publish", args: ARGS, decision: { outcome }, ...more.action },
});
