/**
 * Kinds that the service alone writes: its own acts, on the tenant's `$system` log, or on the log that they are about
 * (design sections 3, 4 and 5).
 *
 * @module
 */
import { z } from "zod";
import {
  boolean,
  count,
  entryRef,
  type FieldTable,
  hash,
  headRef,
  json,
  label,
  labels,
  oneOf,
  optional,
  positive,
  required,
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
        expires_at: optional(time, "until when"),
        by,
      },
    },
    "apikey.revoked": {
      description: "An API key was withdrawn.",
      action: { key_id: required(label, "the API key's id"), by, reason },
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
      action: { ...RANGE, fields: optional(labels, "the fields, as section.name; absent: all"), by, reason },
    },
    "erasure.done": {
      description: "Content was erased: its key and its columns are deleted. The log still verifies.",
      action: {
        ...RANGE,
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
    "log.stopped": {
      description: "A log was stopped: what is stored contradicts a head that was mirrored.",
      action: {
        ...LOG,
        reason: required(label, "what was found"),
        stored_head: optional(headRef, "the head that the storage gives"),
        mirrored_head: optional(headRef, "the head that was mirrored"),
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
