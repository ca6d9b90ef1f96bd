/**
 * Limits of an entry and of a batch, each with what gave it.
 *
 * @module
 */

const KIB = 1024;
const MIB = 1024 * KIB;

/** Fields of one entry, over all its sections. 128 commitments of about 100 bytes stay inside a leaf. */
export const MAX_FIELDS = 128;
/** Bytes of a leaf: a C2SP entry bundle gives each leaf a 16-bit length, and small leaves keep proofs portable. */
export const MAX_LEAF_BYTES = 16 * KIB;
/** UTF-8 bytes of one field's canonical text. */
export const MAX_VALUE_BYTES = MIB;
/** UTF-8 bytes of all the canonical texts of one entry: with its leaf in base64 it stays below the 2 MB of a row. */
export const MAX_ENTRY_BYTES = 1.5 * MIB;
/** Entries of one request. */
export const MAX_BATCH_ENTRIES = 1000;
/** Bytes of one request's body. */
export const MAX_BATCH_BYTES = 4 * MIB;
/** Bytes of one storage segment: a row of a Durable Object's SQLite holds 2 MB. */
export const MAX_SEGMENT_BYTES = 1.5 * MIB;
/** Bytes and entries of one commit. */
export const MAX_COMMIT_BYTES = 8 * MIB;
export const MAX_COMMIT_ENTRIES = 2000;
/** Bytes that wait in a log's queue before it answers 503. */
export const MAX_QUEUE_BYTES = 32 * MIB;
