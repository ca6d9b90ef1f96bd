/**
 * What crosses RPC between the witness and the Worker.
 *
 * @module
 */

/** The name of the one object that is the witness: its key and its state belong together. */
export const WITNESS = "witness";

/** The witness' key name: a URL without its scheme, as c2sp.org/tlog-cosignature asks for. */
export function witnessName(host: string): string {
  return `${host}/witness`;
}

/** What to answer to `add-checkpoint`; the body of a 200 is the signature line, of a 409 the size. */
export type AddCheckpointReply =
  | { readonly status: 200; readonly cosignatures: string }
  | { readonly status: 400 | 403 | 404 | 422 }
  | { readonly status: 409; readonly size: number };

/** A log that the witness watches, and the last head of it that it cosigned. */
export interface WitnessedLogView {
  readonly origin: string;
  /** Its keys, as vkeys; none where it is not watched any more. */
  readonly vkeys: readonly string[];
  readonly latest: {
    readonly size: number;
    /** Hex. */
    readonly root: string;
    /** As it was submitted. */
    readonly checkpoint: string;
    /** Milliseconds since the epoch. */
    readonly cosignedAtMs: number;
  } | null;
}
