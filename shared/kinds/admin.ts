/**
 * Kinds of the group "admin and security" that clients write: what administrators and attackers tried.
 *
 * @module
 */
import { json, label, optional, required, text } from "./fields.ts";
import { kinds } from "./sections.ts";

export const ADMIN_KINDS = kinds("admin and security", {
  "security.violation": {
    description: "Something was tried that is never allowed.",
    action: {
      violation_type: required(label, "what sort of violation"),
      details: optional(json, "what is known of it"),
    },
    outcome: {},
    authorization: true,
  },
  "admin.request": {
    description: "An administrator asked for something.",
    action: {
      method: required(label, "the call, or the action"),
      required_capability: optional(label, "the permission that it takes"),
      target_principal: optional(label, "whom it is about"),
      target_run_id: optional(label, "the run that it is about"),
      target_runtime_id: optional(label, "the runtime that it is about"),
      params: optional(json, "its parameters"),
      device_key_id: optional(label, "the device key that signed it"),
      detail: optional(text, "more, in words"),
    },
    outcome: {},
    authorization: true,
  },
  "config.reloaded": {
    description: "The host read its configuration again.",
    action: {},
    outcome: {},
    authorization: true,
  },
});
