/**
 * Hashes over canonical JSON: of tool specs and of approvals.
 *
 * @module
 */
import { toHex, utf8 } from "../bytes.ts";
import type { CryptoPort } from "../crypto/port.ts";
import { canonicalJson } from "../json/canonical.ts";
import { quote } from "../json/chars.ts";

export type Sha256 = Pick<CryptoPort, "sha256">;

/** Hex SHA-256 of text that is canonical already. */
export function hashText(crypto: Sha256, canonical: string): string {
  return toHex(crypto.sha256(utf8(canonical)));
}

/** agentrt's contentHash and specHash: hex SHA-256 of the canonical form of the JSON text. Throws `JsonError`. */
export function contentHash(crypto: Sha256, text: string): string {
  return hashText(crypto, canonicalJson(text));
}

/** What an approval is bound to, all texts canonical. */
export interface ApprovalSubject {
  readonly kind: string;
  /** `{}` stands for an absent one. */
  readonly capability: string | null;
  readonly presentation: string | null;
  readonly runId: string;
  readonly stepId: string;
  /** The whole spec. */
  readonly spec: string;
  readonly args: string;
}

/** The canonical text that the approval hash is over: its members are written in the order of their keys. */
export function approvalText(subject: ApprovalSubject): string {
  const { kind, capability, presentation, runId, stepId, spec, args } = subject;
  return (
    `{"capability":${capability ?? "{}"},"kind":${quote(kind)},"presentation":${presentation ?? "{}"},` +
    `"request":{"args":${args},"run_id":${quote(runId)},"spec":${spec},"step_id":${quote(stepId)}}}`
  );
}

/** agentrt's approvalHash. The reason is not in it. */
export function approvalHash(crypto: Sha256, subject: ApprovalSubject): string {
  return hashText(crypto, approvalText(subject));
}
