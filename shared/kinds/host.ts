/**
 * Kinds of the groups "code" and "host calls": the code that a host loads, and what that code does through the host.
 * Whose call it was is the envelope's `actor`.
 *
 * @module
 */
import { z } from "zod";
import {
  type FieldTable,
  HASH,
  hash,
  json,
  LABEL,
  label,
  listOf,
  maybe,
  oneOf,
  optional,
  POSITIVE,
  required,
  TIME,
  text,
  time,
  typed,
} from "./fields.ts";
import { type KindEntry, kinds } from "./sections.ts";

const CODE: FieldTable = {
  code_id: required(label, "the code: a capsule, a plugin, a package"),
  version: optional(label, "its version"),
  code_hash: optional(hash, "SHA-256 of the code"),
  manifest_hash: optional(hash, "SHA-256 of its manifest"),
};

export const CODE_KINDS = kinds("code", {
  "code.installed": {
    description: "Code was installed.",
    action: { ...CODE, target_principal: optional(label, "for whom") },
    outcome: {},
    authorization: true,
  },
  "code.loaded": {
    description: "Code was loaded, and runs from now on.",
    action: {
      ...CODE,
      engine_profile: optional(label, "what runs it: wasm:<abi>, mcp-host, static"),
      trigger: optional(oneOf("load", "replace"), "loaded anew, or in place of a version that ran"),
    },
    outcome: {},
    authorization: true,
  },
});

/** Calls that were folded into one entry, or lost: at least one, or there is nothing to write down. */
const calls = typed(
  "object",
  z.strictObject({
    count: POSITIVE,
    first_at: maybe(TIME),
    last_at: maybe(TIME),
    fold: maybe(HASH),
    tally: maybe(
      listOf(
        z.strictObject({
          class: LABEL,
          outcome: z.enum(["ok", "failed", "denied"]),
          count: POSITIVE,
          first: z.unknown().optional(),
          first_detail: maybe(z.string()),
        }),
      ),
    ),
  }),
);

/** A call of the host that has an outcome and a right of its own. */
function hostCall(description: string, action: FieldTable): KindEntry {
  return { description, action, outcome: {}, authorization: true };
}

const path = required(text, "the path");
const host = required(label, "the host");
const port = required(typed("integer to 65535", z.int().min(0).max(65_535)), "the port");

export const HOST_KINDS = kinds("host calls", {
  "file.read": hostCall("A file was read.", {
    path,
    content_hash: optional(hash, "SHA-256 of what was read"),
  }),
  "file.write": hostCall("A file was written.", {
    path,
    content_hash: optional(hash, "SHA-256 of what was written"),
  }),
  "file.delete": hostCall("A file was deleted.", { path }),
  "net.connect": hostCall("A connection was opened.", { host, port }),
  "net.bind": hostCall("A port was opened for connections.", { addr: required(label, "address and port") }),
  "net.accept": hostCall("A connection was accepted.", {
    local_addr: required(label, "own address and port"),
    peer_addr: required(label, "the other's address and port"),
  }),
  "process.spawn": hostCall("A process was started.", {
    command: required(text, "the program, or the whole command line"),
    args: optional(json, "its arguments, where they are apart"),
  }),
  "host.run": hostCall("Many calls of the same sort, folded into one entry.", {
    calls: required(
      calls,
      "count from 1, first_at, last_at, fold (SHA-256 over the calls), tally of class, outcome and count",
    ),
  }),
  "host.loss": hostCall("Calls or entries that were not recorded one by one: their loss is on record.", {
    calls: required(calls, "how many, at least one, and what is known of them"),
    reason: required(label, "why: queue_full, ..."),
  }),
  "host.gap": hostCall("A stretch of time that may lack entries: the host did not end cleanly.", {
    epoch: required(label, "the run of the host that left the gap"),
    opened_at: optional(time, "when that run began"),
    reason: required(label, "why: unclean_shutdown, lane_marker_unreadable, lane_marker_unavailable"),
  }),
  "host.admitted": hostCall("A call that is written before it takes effect.", {
    call: required(json, "the call: its class and fields"),
  }),
});
