/**
 * Kinds that the service alone writes: its own acts, on the tenant's `$system` log, or on the log that they are about.
 *
 * @module
 */
import { z } from "zod";
import {
  boolean,
  count,
  entryRef,
  type FieldTable,
  HASH,
  hash,
  headRef,
  json,
  label,
  labels,
  oneOf,
  optional,
  positive,
  required,
  SEQ,
  seq,
  text,
  time,
  typed,
} from "./fields.ts";
import { kinds } from "./sections.ts";

const by = optional(label, "the API key that asked for it");
const reason = optional(text, "why, in the asker's words");
const role = required(
  oneOf("audit", "log", "client", "witness", "astrid_audit", "astrid_v1", "recovery"),
  "the key's role",
);

/** A record of the key registry. */
const RECORD: FieldTable = {
  epoch: required(count, "the registry record's epoch"),
  record_hash: required(hash, "the record's hash"),
  by,
};
const key = required(hash, "the public key, in hex");

const LOG: FieldTable = {
  log_id: required(hash, "the log"),
  principal_id: optional(label, "its principal, in hex"),
  generation: optional(count, "its generation"),
};
const RANGE: FieldTable = {
  log_id: required(hash, "the log"),
  from: required(seq, "the first sequence number"),
  to: required(seq, "the last sequence number"),
};

const seqs = optional(
  typed("list", z.array(z.int().min(1)).min(1)),
  "the entries, where they are not all from the first to the last",
);

export const SERVICE_KINDS = kinds(
  "service",
  {
    "key.created": {
      description: "The tenant's key registry began.",
      action: {
        ...RECORD,
        keys: optional(typed("list", z.array(z.unknown())), "the keys that it binds: role and key"),
      },
    },
    "key.added": { description: "A key was registered.", action: { ...RECORD, role, key } },
    "key.rotated": {
      description: "A key took another's place.",
      action: {
        ...RECORD,
        role,
        key,
        retired: required(hash, "the key whose place it took"),
        effective_at: optional(time, "from when on it signs"),
      },
    },
    "key.retired": { description: "A key was retired.", action: { ...RECORD, role, key } },
    "key.recovered": {
      description: "A key was replaced by means of the offline recovery key.",
      action: { ...RECORD, role, key, retired: optional(hash, "the key whose place it took") },
    },
    "apikey.created": {
      description: "An API key was made.",
      action: {
        key_id: required(label, "the API key's id"),
        name: optional(label, "its name"),
        scopes: required(labels, "what it may do"),
        principals: optional(labels, "the principals that it may do it to"),
        limits: optional(json, "what it may use, where it was given limits of its own"),
        expires_at: optional(time, "until when"),
        by,
      },
    },
    "apikey.revoked": {
      description: "An API key was withdrawn.",
      action: { key_id: required(label, "the API key's id"), by, reason },
    },
    "limits.changed": {
      description: "What a tenant may use was set by the operator, in place of what held before.",
      action: {
        entries_per_minute: optional(count, "entries stored in one minute of the clock; absent: not limited"),
        bytes_per_day: optional(count, "bytes of requests in one day of UTC; absent: not limited"),
        principals: optional(count, "principals but $system; absent: not limited"),
      },
    },
    "extension.declared": {
      description:
        "The kinds under a prefix of the tenant's own were declared, in place of the version before.",
      action: {
        prefix: required(label, "the prefix"),
        version: required(positive, "the version; the highest one holds"),
        hash: required(hash, "SHA-256 of the declaration's canonical JSON"),
        by,
      },
    },
    "policy.stored": {
      description: "A version of a policy was stored.",
      action: {
        name: required(label, "the policy's name"),
        version: required(positive, "the version"),
        type: optional(label, "rules, cedar, module or decisions"),
        hash: required(hash, "SHA-256 of the policy"),
        by,
      },
    },
    "policy.rechecked": {
      description: "Recorded runs were re-checked under a policy, and the report was stored.",
      action: {
        job: required(label, "the re-check's id"),
        status: required(
          oneOf("complete", "budget-exhausted", "cancelled", "failed"),
          "how it ended: only `complete` covers its whole selection",
        ),
        report_hash: required(hash, "SHA-256 of the report"),
        engine: required(label, "rules, cedar, module or decisions"),
        policy_id: optional(label, "the policy's identity"),
        policy_hash: optional(hash, "SHA-256 of the policy"),
        policy_name: optional(label, "the stored policy's name"),
        policy_version: optional(positive, "its version"),
        spec_source: required(oneOf("recorded", "current"), "the tool specs that requests carried"),
        heads: required(
          typed("list", z.array(z.strictObject({ log_id: HASH, size: SEQ, root: HASH }))),
          "the heads that cover what was read, at most 100; the report has them all",
        ),
        logs: required(count, "the logs that were read"),
        runs: required(count, "the runs that were re-checked"),
        failed_runs: required(count, "the runs that could not be"),
        evaluated: required(count, "the evaluations that were looked at"),
        same: required(count, "those that came out the same"),
        different: required(count, "those that differ"),
        new_allows: required(count, "those of them that are allowed now and were not"),
        not_recheckable: required(count, "those that could not be re-checked"),
        by,
      },
    },
    "retention.changed": {
      description: "How long content is kept was changed.",
      action: {
        log_id: optional(hash, "the log; absent: all"),
        rules: required(json, "what holds from now on"),
        by,
      },
    },
    "retention.pruned": {
      description: "Old content was removed. The leaves' hashes stay.",
      action: {
        ...RANGE,
        head: optional(headRef, "the head at that time"),
        archive: optional(text, "where it was kept"),
      },
    },
    "disclosure.made": {
      description: "Content was handed out.",
      action: {
        ...RANGE,
        fields: optional(labels, "the fields, as section.name; absent: all"),
        recipient: optional(label, "to whom"),
        by,
        reason,
      },
    },
    "erasure.requested": {
      description: "Somebody asked for content to be erased.",
      action: {
        ...RANGE,
        seqs,
        fields: optional(labels, "the fields, as section.name; absent: all"),
        by,
        reason,
      },
    },
    "erasure.done": {
      description: "Content was erased: its key and its columns are deleted. The log still verifies.",
      action: {
        ...RANGE,
        seqs,
        fields: optional(labels, "the fields, as section.name; absent: all"),
        count: optional(count, "the entries that lost content"),
        recoverable_until: optional(time, "until when point-in-time recovery could bring it back"),
        request_entry: optional(entryRef, "the entry of the request: seq and hash"),
        by,
        reason,
      },
    },
    "log.created": {
      description: "A principal's log began.",
      action: { ...LOG, origin: required(text, "its checkpoint origin"), by },
    },
    "log.changed": {
      description: "A setting of logs was changed.",
      action: {
        log_id: optional(hash, "the log; absent: all"),
        public_heads: optional(boolean, "heads answer without a key"),
        by,
      },
    },
    "log.anchored": {
      description: "A head of a log is kept elsewhere, as a holder of the scope anchor says.",
      action: {
        log_id: required(hash, "the log; of the tenant's log of heads, the registry id"),
        size: required(positive, "the head's size"),
        checkpoint_hash: required(hash, "SHA-256 of the checkpoint that is kept"),
        where: required(text, "where it is kept, in the asker's words"),
        receipt_hash: optional(hash, "SHA-256 of what was got for it there"),
        by,
      },
    },
    "log.stopped": {
      description: "A log was stopped: what is stored contradicts a head that was mirrored.",
      action: {
        ...LOG,
        reason: required(label, "what was found"),
        stored_head: optional(headRef, "the head that the storage gives"),
        mirrored_head: optional(headRef, "the head that was mirrored"),
      },
    },
    "log.refilled": {
      description:
        "A log whose storage was set back took its entries from the mirror and the index, and verified them.",
      action: {
        ...LOG,
        from: required(seq, "the first entry that it took"),
        to: required(seq, "the last one"),
        without_content: optional(count, "entries that came without their values"),
        stored_head: optional(headRef, "the head that its storage gave"),
        mirrored_head: optional(headRef, "the head that was mirrored"),
        head: optional(headRef, "its head since then"),
      },
    },
    "log.sealed": {
      description: "A generation of a log ended: nothing is added to it again.",
      action: { ...LOG, head: optional(headRef, "its last head"), by, reason },
    },
    "log.recovered": {
      description:
        "A new generation took the place of a stopped one, both of whose heads are kept as evidence.",
      action: {
        ...LOG,
        previous_log_id: required(hash, "the generation before"),
        stored_head: optional(headRef, "the head that its storage gave"),
        mirrored_head: optional(headRef, "the head that was mirrored"),
        by,
        reason,
      },
    },
    "log.deleted": {
      description: "A principal was deleted with its log.",
      action: { ...LOG, head: optional(headRef, "its last head"), by, reason },
    },
  },
  "service",
);
