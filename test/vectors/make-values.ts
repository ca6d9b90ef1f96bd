/**
 * Vectors of canonical texts, fields, and log ids.
 *
 * @module
 */
import { fromHex, toHex, utf8 } from "../../shared/bytes.ts";
import { encodeCbor } from "../../shared/cbor/encode.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { commitField, FIELD_TAG, SECTIONS } from "../../shared/entry/commitment.ts";
import { computeLogId, LOG_TAG, parseOrigin } from "../../shared/entry/log-id.ts";
import { canonicalJson } from "../../shared/json/canonical.ts";
import { JsonError } from "../../shared/json/errors.ts";
import { decodeUtf8 } from "../../shared/json/utf8.ts";
import { JsonReader } from "../../shared/json/reader.ts";
import { hexOf } from "./inputs.ts";

/** JSON texts as they may be sent; what has no readable form is written with escapes. */
const TEXTS: readonly string[] = [
  "null",
  " true ",
  "1",
  "1.0",
  "1e0",
  "-0",
  "12345678901234567890",
  "0.1e-9999",
  '{"b":1,"a":2}',
  '{"a":{"z":[],"y":{}},"A":[ 1 , 2 ]}',
  '{"\u{1F600}":1,"\uE000":2,"\u00e9":3,"e":4}',
  '"caf\\u00e9 \\ud83d\\ude00"',
  '"\u65e5\u672c\u8a9e \u0440\u0443\u0441\u0441\u043a\u0438\u0439"',
  '"<a href=\\"x\\">&\\/</a>"',
  '"\\u0000\\u0001\\b\\f\\n\\r\\t\\u001f\u007f"',
  '"\u2028\u2029"',
  '"\\""',
];

const REFUSED_TEXTS: readonly string[] = [
  "",
  "{",
  "[1,]",
  "01",
  "1 2",
  "'a'",
  "\uFEFF1",
  '{"a":1,"a":2}',
  '{"a":1,"\\u0061":2}',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  "1e400",
  "1e10001",
];

/** Bytes that are no UTF-8, in hex. */
const REFUSED_BYTES: readonly string[] = ["22ff22", "22c08022", "22eda08022", "22f490808022"];

function codeOf(bytes: Uint8Array): string {
  const { text, ok } = decodeUtf8(bytes);
  const reader = new JsonReader(text, 0, text.length, { escapedBytes: !ok });
  try {
    reader.readCanonical();
    reader.finish();
  } catch (error) {
    if (error instanceof JsonError) return error.code;
  }
  throw new Error("a text that the vectors call refused is accepted");
}

export function canonicalVectors(): unknown {
  return {
    accepted: TEXTS.map((text) => ({ text, canonical: canonicalJson(text) })),
    refused: [
      ...REFUSED_TEXTS.map((text) => ({ text, code: codeOf(utf8(text)) })),
      ...REFUSED_BYTES.map((hex) => ({ hex, code: codeOf(fromHex(hex)) })),
    ],
  };
}

/** Fields by name and text; each is committed to in every section. */
const FIELDS: readonly (readonly [string, string])[] = [
  ["tool", '"read_file"'],
  ["result", "null"],
  ["args", '{"a":1.0,"b":[true,false,null],"c":12345678901234567890}'],
  ["note", '"caf\u00e9 \u65e5\u672c\u8a9e \u{1F600} \\u003c\\u0026\\u2028"'],
  ["a", '""'],
  ["abcdefghijklmnopqrstuvw", `"${"x".repeat(21)}"`],
  ["abcdefghijklmnopqrstuvwx", `"${"x".repeat(22)}"`],
  ["0123456789_abcdefghijklmnopqrstuvwxyz.0123456789_abcdefghijklmno", `"${"\u00e9".repeat(127)}"`],
  ["large", `"${"y".repeat(65_534)}"`],
];

export function fieldVectors(crypto: CryptoPort): unknown {
  return FIELDS.flatMap(([name, text]) =>
    SECTIONS.map((section) => {
      const salt = fromHex(hexOf(`salt/${section}/${name}`, 16));
      const encoded = encodeCbor([FIELD_TAG, section, name, salt, text]);
      return {
        salt_label: `salt/${section}/${name}`,
        section,
        name,
        salt: toHex(salt),
        ...(text.length > 1000 ? { text_repeats: [text.slice(1, 2), text.length - 2] } : { text, encoded: toHex(encoded) }),
        commitment: toHex(commitField(crypto, { section, name, salt, text })),
      };
    }),
  );
}

const HOSTS = ["log.example", "a", "127.0.0.1:8787", `${"h".repeat(63)}.example`];

export function logIdVectors(crypto: CryptoPort): unknown {
  return HOSTS.flatMap((host, i) =>
    [1, 2, 24, 256, 65_536, 999_999_999].map((generation) => {
      const registryId = hexOf(`registry/${i}`, 32);
      const origin = `${host}/t/${hexOf(`tenant/${i}`, 16)}/p/${hexOf(`principal/${i}`, 16)}.${generation}`;
      const { principal } = parseOrigin(origin);
      const encoded = encodeCbor([LOG_TAG, fromHex(registryId), fromHex(principal), generation]);
      return {
        registry_id: registryId,
        origin,
        encoded: toHex(encoded),
        log_id: toHex(computeLogId(crypto, fromHex(registryId), principal, generation)),
      };
    }),
  );
}
