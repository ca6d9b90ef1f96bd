/**
 * Kinds of a tenant's own, as the API answers them (docs/kinds.md).
 *
 * @module
 */
import { z } from "zod";
import { DeclarationIn } from "../kinds/declaration.ts";
import { Hash, Time } from "./schemas.ts";

/** One version of what is declared under a prefix. */
export const DeclarationOut = z.object({
  prefix: z.string(),
  version: z.int().min(1),
  hash: Hash.describe("SHA-256 of the declaration's canonical JSON, as its extension.declared entry has it"),
  created_at: Time,
});

export const ExtensionsOut = z.object({
  extensions: z.array(
    DeclarationOut.extend({ kinds: z.array(z.string()).describe("names of kinds, after the prefix") }),
  ),
});

export const ExtensionOut = DeclarationOut.extend({
  declaration: DeclarationIn.describe("as it was sent, in canonical form"),
});
