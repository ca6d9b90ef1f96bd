import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { toHex } from "../../../shared/bytes.ts";
import { commitField } from "../../../shared/entry/commitment.ts";
import { readFieldForm, writeFieldForm } from "../../../shared/entry/field-form.ts";
import { canonicalJson } from "../../../shared/json/canonical.ts";
import { accepted, refusal, seal, sectionOf } from "./ingest-support.ts";

const HASH = "ab".repeat(32);
const SALT = "cd".repeat(16);
const entry = (field: string) => `{"id":"e","kind":"ext.test.form","action":{"f":${field}}}`;

describe("a field", () => {
  it("is its plain value, unless that has one of the special names at its top", () => {
    for (const text of [
      "null",
      "1",
      '"$value"',
      '{"a":1}',
      '["$value"]',
      '{"a":{"$value":1}}',
      '{"value":1}',
    ]) {
      expect(readFieldForm(text, "")).toEqual({ text, salt: null });
      expect(writeFieldForm(text)).toBe(text);
    }
  });

  it("may be sent as a commitment alone, and is then answered as that", () => {
    const { leaf, text, values } = seal(accepted(entry(`{"$commitment":"${HASH}"}`)));
    expect(toHex(leaf.action.get("f") ?? new Uint8Array())).toBe(HASH);
    expect(values).toBe('{"action":{}}');
    expect(sectionOf(text, "action").get("f")).toBe(`{"$commitment":"${HASH}"}`);
  });

  it("may be sent with its sender's salt", () => {
    const { leaf, text, salts } = seal(accepted(entry(`{"$salt":"${SALT}","$value":{"b":1.0,"a":[]}}`)));
    const opening = {
      section: "action",
      name: "f",
      salt: new Uint8Array(16).fill(0xcd),
      text: '{"a":[],"b":1.0}',
    } as const;
    expect(leaf.action.get("f")).toEqual(commitField(nativeCrypto, opening));
    expect(salts).toBe(`{"action":{"f":"${SALT}"}}`);
    expect(sectionOf(text, "action").get("f")).toBe('{"a":[],"b":1.0}');
  });

  it("may be any value at all, in $value, and is answered in the form in which it would be sent again", () => {
    const values = fc.oneof(
      fc.json().map(canonicalJson),
      fc.constantFrom(
        `{"$commitment":"${HASH}"}`,
        '{"$value":1}',
        `{"$salt":"x"}`,
        '{"$value":{"$value":null}}',
        '{"$erased":true}',
      ),
    );
    fc.assert(
      fc.property(values, (value) => {
        const { leaf, text, values: stored } = seal(accepted(entry(`{"$value":${value}}`)));
        expect(stored).toBe(`{"action":{"f":${value}}}`);
        const answered = sectionOf(text, "action").get("f") ?? "";
        const again = seal(accepted(entry(answered)));
        expect(again.values).toBe(stored);
        expect(again.leaf.action.get("f")).toEqual(leaf.action.get("f"));
      }),
    );
  });

  it.each([
    [`{"$commitment":"${HASH}","x":1}`, "/action/f"],
    [`{"$commitment":"${HASH}","$value":1}`, "/action/f"],
    [`{"$commitment":"${HASH}","$salt":"${SALT}"}`, "/action/f"],
    [`{"$commitment":"${HASH.slice(2)}"}`, "/action/f/$commitment"],
    [`{"$commitment":"${HASH.toUpperCase()}"}`, "/action/f/$commitment"],
    ['{"$commitment":null}', "/action/f/$commitment"],
    [`{"$salt":"${SALT}"}`, "/action/f"],
    [`{"$value":1,"$salt":"${SALT}","x":1}`, "/action/f"],
    ['{"$value":1,"x":1}', "/action/f"],
    [`{"$value":1,"$salt":"${SALT}00"}`, "/action/f/$salt"],
    ['{"$value":1,"$salt":1}', "/action/f/$salt"],
    ['{"$erased":true}', "/action/f"],
    [`{"$erased":true,"$commitment":"${HASH}"}`, "/action/f"],
  ])("is refused as a mixture of the forms: %s", (field, pointer) => {
    expect(refusal(entry(field))).toBe(`invalid-field ${pointer}`);
    // The same names spelled with an escape are the same names.
    expect(refusal(entry(field.replaceAll("$", "\\u0024")))).toBe(`invalid-field ${pointer}`);
  });
});
