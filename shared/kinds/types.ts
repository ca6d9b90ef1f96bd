/**
 * What a kind of entry is made of: the shapes that the catalogue is written in.
 *
 * @module
 */
import type { z } from "zod";

/** The type of a field's value. */
export interface FieldType {
  /** Its name in the docs: `hash`, `count`, `one of a, b`. */
  readonly type: string;
  /** The Zod schema, or null for opaque JSON: arguments, results, whatever a sender keeps. */
  readonly schema: z.ZodType | null;
  /**
   * Whether the canonical text surely conforms, told without parsing it; where it can't tell, false, and the schema
   * decides.
   */
  readonly quick: (text: string) => boolean;
  /** Decides where there is no Zod schema: of fields that a tenant declared. */
  readonly check?: FieldCheck;
}

/** What is wrong with a value: `path` is a JSON pointer within it. The message contains no submitted value. */
export interface Violation {
  readonly code: "unknown-field" | "missing-field" | "invalid-field";
  readonly path: string;
  readonly message: string;
}

/** The first violation of a parsed value, or null. */
export type FieldCheck = (value: unknown) => Violation | null;

/** One field of a section. An optional field may be absent, or null: null is committed and reads as not set. */
export interface FieldSpec extends FieldType {
  /** 1 to 64 of `[a-z0-9_.]`. */
  readonly name: string;
  readonly optional: boolean;
  /** One sentence or less, with the unit where there is one. */
  readonly description: string;
}

/** The fields of one section of an entry. */
export interface SectionSpec {
  readonly fields: readonly FieldSpec[];
  readonly byName: ReadonlyMap<string, FieldSpec>;
  /** The fields that have to be there. */
  readonly required: readonly FieldSpec[];
  /** Whether fields that are not listed are accepted: only in extensions. */
  readonly open: boolean;
}

/** Who may write entries of a kind: those who hold an API key, or the service alone. */
export type KindWriter = "client" | "service";

export const GROUPS = [
  "run",
  "step and policy",
  "model and HTTP",
  "tool",
  "approval",
  "authority",
  "code",
  "host calls",
  "admin and security",
  "service",
  "yours",
] as const;
export type KindGroup = (typeof GROUPS)[number];

/** One kind of entry. */
export interface KindSpec {
  readonly kind: string;
  readonly group: KindGroup;
  readonly description: string;
  readonly writer: KindWriter;
  readonly action: SectionSpec;
  /** Absent: an entry of this kind has no outcome. */
  readonly outcome?: SectionSpec;
  /** Whether the outcome has to be there. */
  readonly outcomeRequired: boolean;
  /** Whether an entry of this kind may say by what right (`authorization`). */
  readonly authorization: boolean;
}

/** A name of a field, wherever it comes from. */
export const FIELD_NAME = /^[a-z0-9_.]{1,64}$/;
