/**
 * Fields chosen by name, as `section.name`: which are erased, which are disclosed.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import type { SectionName } from "./commitment.ts";
import { SECTIONS } from "./commitment.ts";
import { MAX_FIELDS } from "./limits.ts";

/** `action.args`; a field's name may have full stops itself. */
export const SELECTED_FIELD = new RegExp(`^(?:${SECTIONS.join("|")})\\.[a-z0-9_.]{1,64}$`);

/** Chosen fields. */
export class FieldSelection {
  /** Sorted, each once; null: all fields. */
  readonly names: readonly string[] | null;
  readonly #names: ReadonlySet<string> | null;

  private constructor(names: readonly string[] | null) {
    this.names = names;
    this.#names = names === null ? null : new Set(names);
  }

  static readonly all = new FieldSelection(null);

  /** Throws `RunsealError("invalid-field")` where a name is none, or there are none or more than an entry can have. */
  static of(names: readonly string[]): FieldSelection {
    const sorted = [...new Set(names)].sort();
    const bad =
      sorted.length === 0 || sorted.length > MAX_FIELDS || sorted.some((one) => !SELECTED_FIELD.test(one));
    if (bad) throw new RunsealError("invalid-field", "fields are named section.name, as in action.args");
    return new FieldSelection(sorted);
  }

  has(section: SectionName, name: string): boolean {
    return this.#names?.has(`${section}.${name}`) ?? true;
  }
}
