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

/** The spec of an extension's kind, with the declared sections or with open ones; undefined for any other kind. */
export function extensionSpec(
  kind: string,
  declared: ExtensionSections = { action: OPEN_ACTION, outcome: OPEN_OUTCOME },
): KindSpec | undefined {
  if (extensionPrefix(kind) === null) return undefined;
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
