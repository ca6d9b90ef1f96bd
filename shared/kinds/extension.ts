/**
 * Kinds of a tenant's own: `ext.<prefix>.<name>`, under a prefix that the tenant declares.
 *
 * @module
 */
import { type FieldTable, section } from "./fields.ts";
import { COMMON_ACTION, COMMON_OUTCOME } from "./sections.ts";
import type { KindSpec, SectionSpec } from "./types.ts";

const EXTENSION = /^ext\.([a-z][a-z0-9_-]{0,31})\.([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)$/;
const MAX_KIND_LENGTH = 128;
/** A prefix alone. */
export const EXTENSION_PREFIX = /^[a-z][a-z0-9_-]{0,31}$/;

const OPEN_ACTION: SectionSpec = section(COMMON_ACTION, true);
const OPEN_OUTCOME: SectionSpec = section(COMMON_OUTCOME, true);

/** The prefix of an extension's kind; null for any other text. */
export function extensionPrefix(kind: string): string | null {
  if (kind.length > MAX_KIND_LENGTH) return null;
  return EXTENSION.exec(kind)?.[1] ?? null;
}

/** The sections that a tenant declared for one of its kinds. */
export interface ExtensionSections {
  readonly description?: string;
  readonly action: SectionSpec;
  readonly outcome?: SectionSpec;
}

/** The kinds that a tenant declared under one prefix. */
export interface DeclaredKinds {
  /** The spec of a kind by its whole name; undefined where it is not declared. */
  readonly specOf: (kind: string) => KindSpec | undefined;
}

/** What a tenant declared under a prefix; null where it did not declare the prefix. */
export type Extensions = (prefix: string) => DeclaredKinds | null;

const OPEN: ExtensionSections = { action: OPEN_ACTION, outcome: OPEN_OUTCOME };

/**
 * The spec of an extension's kind; undefined for any other text, and for a kind that its tenant did not declare under a
 * prefix that it did. Under any other prefix the fields are open.
 */
export function extensionSpec(kind: string, extensions?: Extensions): KindSpec | undefined {
  const prefix = extensionPrefix(kind);
  if (prefix === null) return undefined;
  const declared = extensions?.(prefix) ?? null;
  return declared === null ? specWith(kind, OPEN) : declared.specOf(kind);
}

/** The spec of an extension's kind with these sections. */
export function specWith(kind: string, declared: ExtensionSections): KindSpec {
  return {
    kind,
    group: "yours",
    description: declared.description ?? "A kind of the tenant's own.",
    writer: "client",
    action: declared.action,
    ...(declared.outcome === undefined ? {} : { outcome: declared.outcome }),
    outcomeRequired: false,
    authorization: true,
  };
}

/** A declared section's fields, with those that every section of its name has. */
export function withCommonFields(name: "action" | "outcome", table: FieldTable, open: boolean): SectionSpec {
  return section({ ...table, ...(name === "action" ? COMMON_ACTION : COMMON_OUTCOME) }, open);
}
