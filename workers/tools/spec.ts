/**
 * What a tool spec is: canonical JSON, named by its hash.
 *
 * @module
 */
import { z } from "zod";
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex, utf8 } from "../../shared/bytes.ts";
import { canonicalJson } from "../../shared/json/canonical.ts";
import { JsonError } from "../../shared/json/errors.ts";
import { Problem } from "../http/problem.ts";

/** What a spec must have; more is kept as it is. */
export const ToolSpec = z.looseObject({
  name: z.string().min(1).max(256),
  description: z.string().optional(),
  input_schema: z.unknown().optional(),
  side_effect: z
    .string()
    .max(64)
    .optional()
    .describe("read_only, local_mutation, remote_mutation or destructive; empty where it is not known"),
  timeout: z.number().optional(),
  terminal: z.boolean().optional(),
});

export interface ReadSpec {
  /** Canonical JSON. */
  readonly text: string;
  /** Hex SHA-256 of the text. */
  readonly hash: string;
}

/** The spec that a text is. Throws 400 and 422 problems with a pointer. */
export function readSpec(text: string): ReadSpec {
  const canonical = canonicalText(text);
  const parsed = ToolSpec.safeParse(JSON.parse(canonical));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new Problem("invalid-field", {
      pointer: `/${(issue?.path ?? []).join("/")}`,
      detail: "not a tool spec",
    });
  }
  return { text: canonical, hash: toHex(nativeCrypto.sha256(utf8(canonical))) };
}

function canonicalText(text: string): string {
  try {
    return canonicalJson(text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new Problem(error.code, { pointer: error.pointer, detail: error.message });
  }
}
