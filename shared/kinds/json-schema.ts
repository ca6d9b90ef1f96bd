/**
 * JSON Schemas (2020-12) of the sections of a kind's entries, for OpenAPI and for people who generate types.
 *
 * @module
 */
import type { JsonSchema } from "./plain-schema.ts";
import { plainSchema } from "./plain-schema.ts";
import { AUTHORIZATIONS, OUTCOME_STATUSES } from "./sections.ts";
import type { FieldSpec, KindSpec, SectionSpec } from "./types.ts";

export type { JsonSchema } from "./plain-schema.ts";

const hex = (bytes: number): JsonSchema => ({ type: "string", pattern: `^[0-9a-f]{${2 * bytes}}$` });

/** What any field may be sent as instead of its plain value. */
export const FIELD_FORMS: Readonly<Record<"CommittedField", JsonSchema>> = {
  CommittedField: {
    description: "In place of a field's value: a commitment alone, or the value with the sender's own salt.",
    oneOf: [
      {
        type: "object",
        properties: { $commitment: hex(32) },
        required: ["$commitment"],
        additionalProperties: false,
      },
      {
        type: "object",
        properties: { $value: true, $salt: hex(16) },
        required: ["$value"],
        additionalProperties: false,
      },
    ],
  },
};

/**
 * The JSON Schema of the sections (`action`, `authorization`, `outcome`) of an entry of this kind, and its `kind`. It
 * holds `FIELD_FORMS` under `$defs`; `forms`, where given, is the place where they are referred to instead, as
 * `#/components/schemas/`.
 */
export function sectionsSchema(spec: KindSpec, forms?: string): JsonSchema {
  const { kind } = spec;
  const refs = forms ?? "#/$defs/";
  const properties: Record<string, JsonSchema> = {
    kind: { const: kind },
    action: sectionSchema(spec.action, refs),
  };
  if (spec.authorization) {
    properties.authorization = {
      oneOf: Object.entries(AUTHORIZATIONS).map(([type, section]) =>
        sectionSchema(section, refs, { type: { const: type } }),
      ),
    };
  }
  if (spec.outcome !== undefined) {
    properties.outcome = sectionSchema(spec.outcome, refs, { status: { enum: OUTCOME_STATUSES } });
  }
  return {
    // With an $id, "#/$defs/" means this schema's own wherever it is embedded.
    ...(forms === undefined ? { $id: `urn:runseal:kind:${kind}`, $defs: FIELD_FORMS } : {}),
    title: kind,
    description: spec.description,
    type: "object",
    properties,
    required: ["kind", "action", ...(spec.outcomeRequired ? ["outcome"] : [])],
  };
}

function sectionSchema(
  section: SectionSpec,
  refs: string,
  tag: Readonly<Record<string, JsonSchema>> = {},
): JsonSchema {
  return {
    type: "object",
    properties: {
      ...tag,
      ...Object.fromEntries(section.fields.map((field) => [field.name, fieldSchema(field, refs)])),
    },
    required: [...Object.keys(tag), ...section.required.map(({ name }) => name)],
    ...(section.open
      ? { propertyNames: { pattern: "^[a-z0-9_.]{1,64}$" } }
      : { additionalProperties: false }),
  };
}

function fieldSchema(field: FieldSpec, refs: string): JsonSchema {
  const { description } = field;
  // Opaque JSON is anything, the other forms included.
  if (field.schema === null) return { description };
  return {
    description,
    anyOf: [
      plainSchema(field.schema),
      ...(field.optional ? [{ type: "null" }] : []),
      { $ref: `${refs}CommittedField` },
    ],
  };
}
