/**
 * Checks an entry's sections against its kind. It works on the canonical texts that are committed, and never changes
 * them; opaque fields are not parsed, and simple ones mostly neither.
 *
 * @module
 */
import type { z } from "zod";
import { escapePointer, jsonPointer } from "../json/pointer.ts";
import {
  AUTHORIZATION_TYPES,
  AUTHORIZATIONS,
  isAuthorizationType,
  isOutcomeStatus,
  OUTCOME_STATUSES,
} from "./sections.ts";
import { FIELD_NAME, type FieldSpec, type KindSpec, type SectionSpec } from "./types.ts";

export type SectionName = "action" | "authorization" | "outcome";

export type ProblemCode = "unknown-section" | "unknown-field" | "missing-field" | "invalid-field";

/** The first thing that is wrong. `pointer` is relative to the entry; the message contains no submitted value. */
export interface Problem {
  readonly code: ProblemCode;
  readonly pointer: string;
  readonly message: string;
}

/** A section as it was sent. */
export interface SectionContent {
  /** An authorization's `type`, an outcome's `status`; null in an action, or where it is missing. */
  readonly tag: string | null;
  /** Canonical JSON text by field name. */
  readonly texts: ReadonlyMap<string, string>;
  /** Fields that came as a commitment in place of a value: they count as present, and their value is not checked. */
  readonly commitments: ReadonlyMap<string, unknown>;
}

/** The first problem of an entry's sections, or null. */
export function validateEntrySections(
  spec: KindSpec,
  sections: ReadonlyMap<SectionName, SectionContent>,
): Problem | null {
  return (
    validateSection(spec, "action", sections.get("action")) ??
    validateSection(spec, "authorization", sections.get("authorization")) ??
    validateSection(spec, "outcome", sections.get("outcome"))
  );
}

/** The first problem of one section, or null; `content` is undefined where the entry does not have the section. */
export function validateSection(
  spec: KindSpec,
  name: SectionName,
  content: SectionContent | undefined,
): Problem | null {
  if (content === undefined) return missingSection(spec, name);
  const { tag } = content;
  switch (name) {
    case "action":
      return validateFields(spec.action, "/action", content);
    case "outcome":
      if (spec.outcome === undefined) return unknownSection(name);
      if (tag === null || !isOutcomeStatus(tag)) return badTag("/outcome/status", tag, OUTCOME_STATUSES);
      return validateFields(spec.outcome, "/outcome", content);
    case "authorization":
      if (!spec.authorization) return unknownSection(name);
      if (tag === null || !isAuthorizationType(tag))
        return badTag("/authorization/type", tag, AUTHORIZATION_TYPES);
      return validateFields(AUTHORIZATIONS[tag], "/authorization", content);
  }
}

function missingSection(spec: KindSpec, name: SectionName): Problem | null {
  if (name === "authorization" || (name === "outcome" && !spec.outcomeRequired)) return null;
  return { code: "missing-field", pointer: `/${name}`, message: `an entry of this kind has an ${name}` };
}

function unknownSection(name: SectionName): Problem {
  return { code: "unknown-section", pointer: `/${name}`, message: `an entry of this kind has no ${name}` };
}

function badTag(pointer: string, tag: string | null, known: readonly string[]): Problem {
  return {
    code: tag === null ? "missing-field" : "invalid-field",
    pointer,
    message: `must be one of ${known.join(", ")}`,
  };
}

function validateFields(section: SectionSpec, pointer: string, content: SectionContent): Problem | null {
  const { texts, commitments } = content;
  for (const [name, text] of texts) {
    const field = section.byName.get(name);
    if (field === undefined) {
      if (section.open && FIELD_NAME.test(name)) continue;
      return unknownField(pointer, name);
    }
    const problem = checkField(field, pointer, text);
    if (problem !== null) return problem;
  }
  for (const name of commitments.keys()) {
    if (!section.byName.has(name) && !(section.open && FIELD_NAME.test(name)))
      return unknownField(pointer, name);
  }
  for (const { name } of section.required) {
    if (!texts.has(name) && !commitments.has(name)) {
      return {
        code: "missing-field",
        pointer: `${pointer}/${name}`,
        message: "a field that this kind needs",
      };
    }
  }
  return null;
}

function unknownField(pointer: string, name: string): Problem {
  return {
    code: "unknown-field",
    pointer: `${pointer}/${escapePointer(name)}`,
    message: "this kind has no such field",
  };
}

function checkField(field: FieldSpec, pointer: string, text: string): Problem | null {
  if (field.quick(text) || (field.optional && text === "null")) return null;
  if (field.schema === null) return checkDeclared(field, pointer, text);
  const value: unknown = JSON.parse(text);
  const issue = field.schema.safeParse(value).error?.issues[0];
  return issue === undefined ? null : problemOf(issue, value, `${pointer}/${field.name}`);
}

/** A field by the check that its tenant's schema gave it; one without has any value. */
function checkDeclared({ check, name }: FieldSpec, pointer: string, text: string): Problem | null {
  const violation = check?.(JSON.parse(text)) ?? null;
  if (violation === null) return null;
  const { code, path, message } = violation;
  return { code, pointer: `${pointer}/${name}${path}`, message };
}

function problemOf(issue: z.core.$ZodIssue, value: unknown, pointer: string): Problem {
  const place =
    pointer + jsonPointer(...issue.path.map((step) => (typeof step === "number" ? step : String(step))));
  if (issue.code === "unrecognized_keys") return unknownField(place, issue.keys[0] ?? "");
  if (issue.path.length > 0 && isAbsent(value, issue.path)) {
    return { code: "missing-field", pointer: place, message: "a member that has to be there" };
  }
  return { code: "invalid-field", pointer: place, message: issue.message };
}

/** Whether nothing stands at the path. */
function isAbsent(value: unknown, path: readonly PropertyKey[]): boolean {
  let at = value;
  for (const step of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, step)) return true;
    at = (at as Record<PropertyKey, unknown>)[step];
  }
  return false;
}
