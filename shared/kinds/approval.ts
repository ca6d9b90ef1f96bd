/**
 * Kinds of the groups "approval" and "authority": what somebody is asked to allow, and what stays allowed.
 *
 * @module
 */
import {
  entryRef,
  type FieldTable,
  hash,
  json,
  label,
  labels,
  oneOf,
  optional,
  required,
  text,
  time,
} from "./fields.ts";
import { kinds } from "./sections.ts";

const DECIDED: FieldTable = {
  approval_id: required(label, "the approval"),
  request_entry: optional(entryRef, "the entry of the request: seq and hash"),
  by: optional(label, "who decided"),
  via: optional(label, "how: user, session_allowance, session_grant, remembered_consent, timeout, ..."),
  scope: optional(oneOf("once", "session", "workspace", "always"), "how far the decision reaches"),
  note: optional(text, "the decider's words"),
};

export const APPROVAL_KINDS = kinds("approval", {
  "approval.requested": {
    description: "An act waits for somebody's consent: written before anybody is asked.",
    action: {
      approval_id: required(label, "the approval"),
      kind: required(label, "what sort of act: a side effect, an action type"),
      capability: required(json, "what is asked for, to the machine"),
      presentation: required(json, "what is asked for, as it is shown"),
      hash: required(
        hash,
        "the approval hash: SHA-256 of kind, capability, presentation and request in canonical form",
      ),
      reason: optional(text, "why it needs consent"),
      expires_at: optional(time, "until when it may be decided"),
    },
    authorization: true,
  },
  "approval.granted": { description: "Consent was given.", action: DECIDED, authorization: true },
  "approval.denied": { description: "Consent was refused.", action: DECIDED, authorization: true },
  "approval.expired": { description: "Nobody decided in time.", action: DECIDED, authorization: true },
});

export const AUTHORITY_KINDS = kinds("authority", {
  "capability.created": {
    description: "A capability token was made.",
    action: {
      token_id: required(label, "the token"),
      resource: required(text, "what it is for"),
      permissions: required(labels, "what it permits: read, write, execute, delete, invoke, list, create"),
      scope: required(label, "how far it reaches: once, session, workspace, always"),
    },
    outcome: {},
    authorization: true,
  },
  "capability.revoked": {
    description: "A capability token was withdrawn.",
    action: { token_id: required(label, "the token"), reason: optional(text, "why") },
    outcome: {},
    authorization: true,
  },
  "capability.changed": {
    description: "What a principal may do was changed.",
    action: {
      target_principal: required(label, "whose capabilities"),
      kind: required(oneOf("capability", "capsule", "group"), "what they come from"),
      granted: optional(labels, "added"),
      revoked: optional(labels, "removed"),
      via: required(label, "how: an admin call, grant_on_use"),
    },
    outcome: {},
    authorization: true,
  },
});
