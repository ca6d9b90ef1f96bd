/**
 * What every section has: the fields common to all actions and outcomes, and the closed sets of authorization types
 * (Astrid's) and outcome statuses.
 *
 * @module
 */
import {
  count,
  entryRef,
  type FieldTable,
  hash,
  json,
  label,
  optional,
  required,
  section,
  text,
} from "./fields.ts";
import type { KindGroup, KindSpec, KindWriter, SectionSpec } from "./types.ts";

/** Fields that an action of any kind may have. An imported entry keeps its original in the `imported` ones. */
export const COMMON_ACTION: FieldTable = {
  extra: optional(json, "anything else that the sender keeps"),
  "imported.system": optional(label, "the system and format that the entry was imported from"),
  "imported.seq": optional(count, "its sequence number there"),
  "imported.hash": optional(label, "its hash there, as that system writes it"),
  "imported.bytes": optional(text, "its original bytes, in base64"),
};

/** Fields that an outcome of any kind may have. */
export const COMMON_OUTCOME: FieldTable = {
  error: optional(json, "what went wrong: words, or an object"),
  details: optional(json, "more about the outcome"),
};

export const OUTCOME_STATUSES = ["success", "failure", "denied", "unknown"] as const;
export type OutcomeStatus = (typeof OUTCOME_STATUSES)[number];

export const AUTHORIZATION_TYPES = [
  "user",
  "capability",
  "user_approval",
  "not_required",
  "system",
  "denied",
] as const;
export type AuthorizationType = (typeof AUTHORIZATION_TYPES)[number];

const reason = required(label, "why");

/** The fields of each type of authorization. */
export const AUTHORIZATIONS: Readonly<Record<AuthorizationType, SectionSpec>> = {
  user: section({
    user_id: required(label, "the user who asked for the act"),
    message_id: optional(label, "the message that asked"),
  }),
  capability: section({
    token_id: required(label, "the capability that was shown"),
    token_hash: optional(hash, "SHA-256 of the capability"),
  }),
  user_approval: section({
    user_id: required(label, "the user who approved"),
    approval_id: optional(label, "the approval"),
    approval_entry: optional(entryRef, "the entry that recorded the approval"),
  }),
  not_required: section({ reason }),
  system: section({ reason }),
  denied: section({ reason }),
};

export const AUTHORIZATION_MEANINGS: Readonly<Record<AuthorizationType, string>> = {
  user: "a user asked for it",
  capability: "a capability token covers it",
  user_approval: "a user approved it",
  not_required: "it needs no authorization",
  system: "the host itself did it",
  denied: "it was refused",
};

export function isOutcomeStatus(status: string): status is OutcomeStatus {
  return (OUTCOME_STATUSES as readonly string[]).includes(status);
}

export function isAuthorizationType(type: string): type is AuthorizationType {
  return (AUTHORIZATION_TYPES as readonly string[]).includes(type);
}

/** A kind as the catalogue's files write it. */
export interface KindEntry {
  readonly description: string;
  readonly action: FieldTable;
  /** The outcome's own fields, besides the common ones; absent: no outcome. */
  readonly outcome?: FieldTable;
  readonly outcomeRequired?: true;
  readonly authorization?: true;
}

/** The kinds of one group, with the fields that all have. */
export function kinds(
  group: KindGroup,
  entries: Readonly<Record<string, KindEntry>>,
  writer: KindWriter = "client",
): readonly KindSpec[] {
  return Object.entries(entries).map(([kind, entry]) => ({
    kind,
    group,
    description: entry.description,
    writer,
    action: section({ ...entry.action, ...COMMON_ACTION }),
    ...(entry.outcome === undefined ? {} : { outcome: section({ ...entry.outcome, ...COMMON_OUTCOME }) }),
    outcomeRequired: entry.outcomeRequired ?? false,
    authorization: entry.authorization ?? false,
  }));
}
