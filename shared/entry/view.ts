/**
 * An entry as the folds read it: the envelope, and each field as its canonical text, or why there is none. A view is
 * made from a stored entry, from a line of a bundle, or by a test; recheck and audit can't tell the difference.
 *
 * @module
 */

/** Why a field that the leaf commits to has no value here. */
export type Missing = "erased" | "withheld" | "commitment-only";

/** A committed field: its canonical JSON text, or why the text is not there. */
export type FieldView = { readonly text: string } | { readonly missing: Missing };

/** The fields of one section by name. A field that the entry never had is not in the map. */
export type FieldViews = ReadonlyMap<string, FieldView>;

export interface ActorView {
  readonly type: string;
  readonly id: string;
  /** SHA-256 in lower-case hex. */
  readonly code_hash: string | null;
}

export interface EntryView {
  /** From 1, without gaps, in the principal's log. */
  readonly seq: number;
  /** Leaf hash, lower-case hex. */
  readonly hash: string;
  readonly id: string;
  readonly kind: string;
  /** Nanoseconds since the epoch. */
  readonly recorded_at: bigint;
  /** Nanoseconds since the epoch; null where the sender did not know it. */
  readonly occurred_at: bigint | null;
  readonly session: string | null;
  readonly run: string | null;
  readonly step: string | null;
  readonly call: string | null;
  readonly actor: ActorView | null;
  readonly action: FieldViews;
  readonly authorization: { readonly type: string; readonly fields: FieldViews } | null;
  readonly outcome: { readonly status: string; readonly fields: FieldViews } | null;
}
