/**
 * Kinds of the group "tool": calls of tools, and the MCP servers behind them.
 *
 * @module
 */
import { z } from "zod";
import {
  count,
  type FieldTable,
  hash,
  json,
  label,
  oneOf,
  optional,
  required,
  text,
  typed,
} from "./fields.ts";
import { kinds } from "./sections.ts";

const TOOL: FieldTable = {
  tool: required(label, "the tool's name; empty where the sender could not tell"),
  tool_call_id: optional(label, "the provider's id of the call: an attribute, may be empty or repeat"),
};

export const TOOL_KINDS = kinds("tool", {
  "tool.call.started": {
    description: "A tool is called. `call` in the envelope names the call within the run.",
    action: {
      ...TOOL,
      args: required(json, "the arguments, as sent"),
      spec_hash: optional(hash, "SHA-256 of the tool's spec in canonical form"),
    },
    authorization: true,
  },
  "tool.call.completed": {
    description: "What became of a tool call; status unknown where it was cut off before its answer.",
    action: TOOL,
    outcome: { result: optional(json, "what the tool gave back") },
    outcomeRequired: true,
    authorization: true,
  },
  "mcp.resource.read": {
    description: "A resource of an MCP server was read.",
    action: { server: required(label, "the server"), uri: required(text, "the resource") },
    outcome: { result: optional(json, "what was read") },
    authorization: true,
  },
  "mcp.prompt.get": {
    description: "A prompt of an MCP server was fetched.",
    action: {
      server: required(label, "the server"),
      name: required(label, "the prompt"),
      args: optional(json, "its arguments"),
    },
    outcome: { result: optional(json, "the prompt's messages") },
    authorization: true,
  },
  "mcp.elicitation": {
    description: "An MCP server asks the user for something, or the user answers.",
    action: {
      phase: optional(
        oneOf("requested", "sent", "received"),
        "requested by the server, sent to the user, or answered",
      ),
      request_id: optional(label, "names the question through its phases"),
      server: optional(label, "the server"),
      elicitation_type: optional(label, "form, url, ..."),
      schema: optional(json, "the schema of the answer"),
      url: optional(text, "the page that the user is sent to"),
      interaction_type: optional(label, "what happens there"),
      action: optional(label, "what the user did: accept, decline, cancel"),
    },
    outcome: {},
    authorization: true,
  },
  "mcp.sampling": {
    description: "An MCP server asks for a model's answer.",
    action: {
      server: optional(label, "the server"),
      model: optional(label, "the model"),
      prompt_tokens: optional(count, "tokens of its prompt"),
    },
    outcome: {},
    authorization: true,
  },
  "server.started": {
    description: "A tool server was started.",
    action: {
      name: required(label, "the server"),
      transport: optional(label, "stdio, http, ..."),
      binary_hash: optional(hash, "SHA-256 of its program"),
    },
    outcome: {},
    authorization: true,
  },
  "server.stopped": {
    description: "A tool server ended.",
    action: {
      name: required(label, "the server"),
      reason: optional(text, "why"),
      exit_code: optional(typed("integer", z.int()), "its exit code"),
    },
    outcome: {},
    authorization: true,
  },
});
