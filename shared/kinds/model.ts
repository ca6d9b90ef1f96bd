/**
 * Kinds of the group "model and HTTP": calls of models, and the HTTP exchanges below them as a commitment before the
 * request leaves and a completion after the answer.
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
  json,
  LABEL,
  label,
  labels,
  listOf,
  optional,
  positive,
  required,
  typed,
} from "./fields.ts";
import { kinds } from "./sections.ts";

const port = typed("integer to 65535", z.int().min(0).max(65_535));
const httpStatus = typed("integer from 100 to 999", z.int().min(100).max(999));
const sequence = required(positive, "counts the exchanges of the run, from 1, denied ones too");

const MODEL: FieldTable = {
  model: optional(label, "the model's name"),
  provider: optional(label, "who serves it"),
  attempt: optional(positive, "the attempt, from 1"),
};

const USAGE: FieldTable = {
  input_tokens: optional(count, "tokens sent"),
  output_tokens: optional(count, "tokens received"),
  cached_input_tokens: optional(count, "tokens sent that the provider had cached"),
  estimated_cost_micros: optional(count, "estimated cost, in millionths of the currency"),
};

const providerIds = typed("list of objects", listOf(z.strictObject({ header: LABEL, value: z.string() })));

export const MODEL_KINDS = kinds("model and HTTP", {
  "model.dispatched": {
    description: "A model is asked.",
    action: {
      ...MODEL,
      input: optional(json, "what it is asked"),
      input_hash: optional(hash, "SHA-256 of what it is asked, where that is not kept"),
      max_output_tokens: optional(count, "tokens that it may answer with"),
    },
    authorization: true,
  },
  "model.completed": {
    description: "A model answered.",
    action: {
      ...MODEL,
      ...USAGE,
      duration_ms: optional(count, "how long it took, in milliseconds"),
      finish_reason: optional(label, "why it stopped"),
      provider_request_id: optional(label, "the provider's id of the request"),
    },
    outcome: { result: optional(json, "the answer") },
    authorization: true,
  },
  "model.failed": {
    description: "A model gave no answer.",
    action: {
      ...MODEL,
      ...USAGE,
      code: optional(label, "the error, as a code"),
      retryable: optional(boolean, "whether another attempt may succeed"),
      provider_request_id: optional(label, "the provider's id of the request"),
    },
    outcome: {},
    authorization: true,
  },
  "http.request": {
    description: "An HTTP request is about to leave: committed before it does.",
    action: {
      sequence,
      method: required(label, "GET, POST, ..."),
      host: required(label, "the host"),
      port: required(port, "the port"),
      path_hash: required(hash, "SHA-256 of path and query, credentials redacted"),
      headers_hash: required(hash, "SHA-256 of the canonical headers, credentials redacted"),
      body_hash: required(hash, "SHA-256 of the body, secrets redacted"),
      body_len: required(count, "bytes of the body"),
      redirect_hop: required(count, "0, or the number of redirects followed so far"),
      injected_secrets: optional(labels, "names of the secrets that the host put in"),
    },
    authorization: true,
  },
  "http.response": {
    description: "What became of an HTTP request: the pair of run and sequence names it.",
    action: {
      sequence,
      request_entry: optional(entryRef, "the entry of the request: seq and hash"),
    },
    outcome: {
      http_status: optional(httpStatus, "the answer's status"),
      body_hash: optional(hash, "SHA-256 of the body received, secrets redacted"),
      body_len: required(count, "bytes received"),
      complete: required(boolean, "whether the body was read to its end"),
      provider_request_ids: optional(
        providerIds,
        "headers that name the request at the provider: header and value",
      ),
    },
    outcomeRequired: true,
    authorization: true,
  },
});
