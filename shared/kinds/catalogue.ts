/**
 * The catalogue of kinds: one taxonomy, onto which the seed systems' events map. `docs/kinds.md` is
 * made from it.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import { ADMIN_KINDS } from "./admin.ts";
import { APPROVAL_KINDS, AUTHORITY_KINDS } from "./approval.ts";
import { type Extensions, extensionSpec } from "./extension.ts";
import { CODE_KINDS, HOST_KINDS } from "./host.ts";
import { type JsonSchema, sectionsSchema } from "./json-schema.ts";
import { MODEL_KINDS } from "./model.ts";
import { RUN_KINDS } from "./run.ts";
import { SERVICE_KINDS } from "./service.ts";
import { STEP_KINDS } from "./step.ts";
import { TOOL_KINDS } from "./tool.ts";
import type { KindSpec } from "./types.ts";

export type { DeclaredKinds, Extensions } from "./extension.ts";
export { FIELD_FORMS, type JsonSchema } from "./json-schema.ts";
export type { FieldSpec, KindGroup, KindSpec, KindWriter, SectionSpec } from "./types.ts";
export {
  type Problem,
  type ProblemCode,
  type SectionContent,
  validateEntrySections,
  validateSection,
} from "./validate.ts";

/** Every kind but the tenants' own. */
export const KINDS: readonly KindSpec[] = [
  ...RUN_KINDS,
  ...STEP_KINDS,
  ...MODEL_KINDS,
  ...TOOL_KINDS,
  ...APPROVAL_KINDS,
  ...AUTHORITY_KINDS,
  ...CODE_KINDS,
  ...HOST_KINDS,
  ...ADMIN_KINDS,
  ...SERVICE_KINDS,
];

const BY_NAME: ReadonlyMap<string, KindSpec> = new Map(KINDS.map((spec) => [spec.kind, spec]));

/**
 * The spec of a kind; undefined where there is no such kind. `ext.<prefix>.<name>` has the one that the tenant declared
 * under its prefix; where it did not declare the prefix, one that leaves the fields open.
 *
 * @param extensions what the tenant declared: asked for kinds of the tenants' own alone
 */
export function kindSpec(kind: string, extensions?: Extensions): KindSpec | undefined {
  return BY_NAME.get(kind) ?? extensionSpec(kind, extensions);
}

/**
 * The JSON Schema (2020-12) of an entry of this kind: its sections. It is complete in itself; with `forms`, as
 * `#/components/schemas/`, it refers to the `FIELD_FORMS` there. Throws `RunsealError("unknown-kind")`.
 */
export function kindJsonSchema(kind: string, forms?: string): JsonSchema {
  const spec = kindSpec(kind);
  if (spec === undefined) throw new RunsealError("unknown-kind", "there is no such kind");
  return sectionsSchema(spec, forms);
}
