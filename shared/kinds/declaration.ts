/**
 * What a tenant declares of the kinds under one prefix of its own: for each name, the JSON Schemas of its action and
 * its outcome. The declaration is kept, and named by its hash, as canonical JSON text.
 *
 * @module
 */
import { z } from "zod";
import { utf8 } from "../bytes.ts";
import { RunsealError } from "../errors.ts";
import { canonicalJson } from "../json/canonical.ts";
import { jsonPointer } from "../json/pointer.ts";
import { decodeUtf8 } from "../json/utf8.ts";
import { type DeclaredKinds, type ExtensionSections, extensionPrefix, specWith } from "./extension.ts";
import { extensionSections } from "./extension-schema.ts";
import type { KindSpec } from "./types.ts";

/** Bytes of a declaration's canonical text. */
export const MAX_DECLARATION_BYTES = 64 * 1024;
/** Kinds under one prefix. */
export const MAX_DECLARED_KINDS = 100;
const MAX_DESCRIPTION = 512;

const KindDeclaration = z.strictObject({
  description: z.string().max(MAX_DESCRIPTION).optional(),
  action: z
    .looseObject({})
    .describe("JSON Schema 2020-12 of the action: an object whose properties are its fields"),
  outcome: z
    .looseObject({})
    .optional()
    .describe("the same of the outcome, without its status; absent: entries of this kind have no outcome"),
});

/** The kinds under a prefix, by their names after it. */
export const DeclarationIn = z.strictObject({ kinds: z.record(z.string(), KindDeclaration) });
export type Declaration = z.infer<typeof DeclarationIn>;

function refuse(pointer: string, why: string): RunsealError<"bad-schema"> {
  return new RunsealError("bad-schema", why, pointer);
}

/** A declaration's canonical text, checked whole; and its kinds. */
export interface ReadDeclaration {
  readonly text: string;
  readonly kinds: DeclaredKinds;
}

/**
 * Reads a declaration as it was sent.
 *
 * @throws `JsonError`; `RunsealError("bad-schema")` with a pointer
 */
export function readDeclaration(prefix: string, bytes: Uint8Array): ReadDeclaration {
  const sent = decodeUtf8(bytes);
  if (!sent.ok || sent.text.trim() === "")
    throw new RunsealError("json-syntax", "the body is no JSON in UTF-8", "");
  const text = canonicalJson(sent.text);
  if (utf8(text).length > MAX_DECLARATION_BYTES)
    throw refuse("", `a declaration has at most ${MAX_DECLARATION_BYTES} bytes of canonical JSON`);
  const value: unknown = JSON.parse(text);
  const parsed = DeclarationIn.safeParse(value);
  if (!parsed.success) throw notAsDemanded(parsed.error);
  // Not as Zod returned it: it leaves out what it does not look at.
  const declared = Object.entries((value as Declaration).kinds);
  if (declared.length > MAX_DECLARED_KINDS)
    throw refuse("/kinds", `a prefix has at most ${MAX_DECLARED_KINDS} kinds`);
  for (const [name, kind] of declared) {
    // Zod passes over this one name.
    if (name === "__proto__" || extensionPrefix(`ext.${prefix}.${name}`) !== prefix) {
      throw refuse(
        jsonPointer("kinds", name),
        "a name is one or more parts of [A-Za-z0-9_-] with dots between, and a kind has at most 128 characters",
      );
    }
    sectionsOf(name, kind);
  }
  return { text, kinds: declaredKinds(prefix, text) };
}

/**
 * The kinds of a declaration that was read before, by its canonical text. A kind's schemas are compiled when it is first
 * asked for: most of a large declaration is not in use at one time.
 */
export function declaredKinds(prefix: string, text: string): DeclaredKinds {
  const { kinds } = JSON.parse(text) as Declaration;
  const specs = new Map<string, KindSpec>();
  const start = `ext.${prefix}.`.length;
  return {
    specOf: (kind) => {
      const known = specs.get(kind);
      if (known !== undefined) return known;
      const name = kind.slice(start);
      const declared = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
      if (declared === undefined) return undefined;
      const spec = specWith(kind, sectionsOf(name, declared));
      specs.set(kind, spec);
      return spec;
    },
  };
}

function sectionsOf(
  name: string,
  { description, action, outcome }: Declaration["kinds"][string],
): ExtensionSections {
  try {
    return extensionSections({
      action,
      ...(description === undefined ? {} : { description }),
      ...(outcome === undefined ? {} : { outcome }),
    });
  } catch (error) {
    if (!(error instanceof RunsealError) || error.code !== "bad-schema") throw error;
    throw refuse(jsonPointer("kinds", name) + (error.pointer ?? ""), error.message);
  }
}

function notAsDemanded(error: z.ZodError): RunsealError {
  const [issue] = error.issues;
  const path = (issue?.path ?? []).map(String);
  if (issue?.code === "unrecognized_keys" && issue.keys[0] !== undefined) path.push(issue.keys[0]);
  return refuse(jsonPointer(...path), issue?.message ?? "not as the contract demands");
}
