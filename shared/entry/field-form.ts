/**
 * The forms in which a field may stand in JSON: its plain value; a commitment in place
 * of a value, `{"$commitment": "<hex>"}`; a value with the sender's own salt, `{"$value": ..., "$salt": "<hex>"}`, or
 * without one, which is how a value is sent that looks like one of these forms itself. In answers a field that was erased
 * is `{"$erased": true, "$commitment": "<hex>"}`; nobody sends that.
 *
 * @module
 */
import { fromHex } from "../bytes.ts";
import { JsonReader } from "../json/reader.ts";
import { COMMITMENT_BYTES, SALT_BYTES } from "./commitment.ts";
import { refuse } from "./entry-error.ts";

const MEMBERS: readonly string[] = ["$commitment", "$value", "$salt", "$erased"];

/** A field as it was sent: its canonical text with the sender's salt or none, or a commitment alone. */
export type FieldForm =
  | { readonly text: string; readonly salt: Uint8Array | null }
  | { readonly commitment: Uint8Array };

/** Whether the canonical text has one of the special names somewhere: most have none, and need no second reading. */
export function mayBeSpecial(text: string): boolean {
  return (
    text.startsWith("{") &&
    text.includes('"$') &&
    (text.includes('"$value"') ||
      text.includes('"$commitment"') ||
      text.includes('"$salt"') ||
      text.includes('"$erased"'))
  );
}

/** The members of the value, where it is an object with one of the special names; else null. */
function specialMembers(text: string): ReadonlyMap<string, string> | null {
  if (!mayBeSpecial(text)) return null;
  const members = new Map<string, string>();
  const reader = new JsonReader(text);
  reader.enterObject();
  for (let key = reader.nextKey(); key !== null; key = reader.nextKey())
    members.set(key, reader.readCanonical());
  return MEMBERS.some((name) => members.has(name)) ? members : null;
}

function hexText(text: string, bytes: number, pointer: string): Uint8Array {
  const hex = /^"([0-9a-f]*)"$/.exec(text)?.[1];
  if (hex === undefined || hex.length !== 2 * bytes) {
    throw refuse("invalid-field", pointer, `${bytes} bytes of lower-case hex are expected`);
  }
  return fromHex(hex);
}

/**
 * Reads a field's form.
 *
 * @param text the canonical text of what was sent
 * @throws `EntryError("invalid-field")` for a mixture of the forms
 */
export function readFieldForm(text: string, pointer: string): FieldForm {
  const members = specialMembers(text);
  if (members === null) return { text, salt: null };
  const commitment = members.get("$commitment");
  const value = members.get("$value");
  const salt = members.get("$salt");
  if (commitment !== undefined) {
    if (members.size !== 1) throw refuse("invalid-field", pointer, "a commitment stands alone");
    return { commitment: hexText(commitment, COMMITMENT_BYTES, `${pointer}/$commitment`) };
  }
  if (value === undefined || members.size > (salt === undefined ? 1 : 2)) {
    throw refuse("invalid-field", pointer, "a salted value has the members $value and $salt, and no others");
  }
  return { text: value, salt: salt === undefined ? null : hexText(salt, SALT_BYTES, `${pointer}/$salt`) };
}

/** A value as it is answered: one that would be read as a special form is put in `$value`, so that it is not. */
export function writeFieldForm(text: string): string {
  return specialMembers(text) === null ? text : `{"$value":${text}}`;
}
