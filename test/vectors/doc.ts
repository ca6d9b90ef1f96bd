/**
 * The worked examples of docs/format.md, made from the vectors: each stands in the page after a comment that names it.
 *
 * @module
 */
import { fromHex, toHex, utf8 } from "../../shared/bytes.ts";
import type { CborValue } from "../../shared/cbor/decode.ts";
import { decodeCbor } from "../../shared/cbor/decode.ts";
import { encodeCbor } from "../../shared/cbor/encode.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { vectorData } from "./files.ts";

const WIDTH = 108;

type Vector = Readonly<Record<string, never>> & Record<string, unknown>;
const text = (value: unknown): string => String(value);

/** A label and its hex, wrapped under itself. */
function hexLines(label: string, hex: string, indent = 12): string {
  const width = Math.floor((WIDTH - indent) / 2) * 2;
  const lines = hex.match(new RegExp(`.{1,${width}}`, "g")) ?? [""];
  return lines.map((line, i) => `${(i === 0 ? label : "").padEnd(indent)}${line}`).join("\n");
}

/** The items of an encoded array, one a line with its label. */
function itemLines(encoded: string, labels: readonly string[]): string {
  const items = decodeCbor(fromHex(encoded)) as CborValue[];
  const parts = items.map((item) => toHex(encodeCbor(item)));
  const head = encoded.slice(0, encoded.length - parts.join("").length);
  const indent = Math.max(...labels.map((label) => label.length)) + 2;
  return [hexLines("array", head, indent), ...parts.map((part, i) => hexLines(labels[i] ?? "", part, indent))].join("\n");
}

const LEAF_LABELS = [
  "0 version", "1 log_id", "2 seq", "3 prev", "4 recorded_at", "5 occurred_at", "6 id", "7 kind", "8 session", "9 run",
  "10 step", "11 call", "12 actor", "13 submitter", "14 action", "15 authorization", "16 outcome", "17 client", "18 epoch",
  "19 key",
];
const STATEMENT_LABELS = [
  "version", "log_id", "id", "kind", "occurred_at", "session", "run", "step", "call", "actor", "action", "authorization",
  "outcome",
];
const RECORD_LABELS = ["version", "epoch", "prev", "time", "op", "add", "retire", "origin", "nonce"];

const LOW_ORDER = [
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
];

/** The text with the characters that can't be seen named. */
function visible(json: string): string {
  return json.replace(
    /[\p{Cc}\p{Zl}\p{Zp}\p{Co}]/gu,
    (char) => `<U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`,
  );
}

/** The examples by name. */
export function docExamples(crypto: CryptoPort): Map<string, string> {
  const data = vectorData(crypto) as Record<string, never>;
  const named = (file: string, key: string, value: string): Vector => {
    const found = (data[file] as unknown as Vector[]).find((vector) => vector[key] === value);
    if (found === undefined) throw new Error(`there is no vector ${value} in ${file}`);
    return found;
  };
  const canonical = data["canonical-json"] as unknown as { accepted: { text: string; canonical: string }[] };
  const field = named("field", "name", "note");
  const logId = (data["log-id"] as unknown as Vector[])[0] as Vector;
  const minimal = named("leaf", "name", "minimal");
  const full = named("leaf", "name", "full");
  const statement = named("statement", "leaf", "full");
  const tree = data.tree as unknown as { leaf_hashes: string[]; roots_by_size: string[] };
  const records = (data.registry as unknown as { records: Vector[] }).records;
  const [genesis, second] = records as [Vector, Vector];
  const checkpoint = (data.checkpoint as unknown as Vector[]).find(({ size }) => size === 3) as Vector;
  const signer = (checkpoint.signers as unknown as Record<string, string>[])[0] ?? {};
  const tenantLog = (data["tenant-log"] as unknown as Vector[])[0] as Vector;
  const bundle = named("bundle", "name", "whole, pinned by the registry id");
  const signatures = (record: Vector): string =>
    (record.signatures as unknown as { key: string; signature: string }[])
      .map(({ key, signature }) => `${hexLines("key", key)}\n${hexLines("signature", signature)}`)
      .join("\n");
  return new Map([
    ["canonical-json", canonical.accepted.map((one) => `${visible(one.text)}\n    ${visible(one.canonical)}`).join("\n")],
    [
      "field",
      [
        hexLines("section", text(field.section)),
        hexLines("name", text(field.name)),
        hexLines("salt", text(field.salt)),
        `${"text".padEnd(12)}${visible(text(field.text))}`,
        hexLines("text bytes", toHex(utf8(text(field.text)))),
        "",
        itemLines(text(field.encoded), ["version", "section", "name", "salt", "text"]),
        "",
        hexLines("commitment", text(field.commitment)),
      ].join("\n"),
    ],
    [
      "log-id",
      [
        hexLines("origin", text(logId.origin)),
        hexLines("registry_id", text(logId.registry_id)),
        "",
        itemLines(text(logId.encoded), ["version", "registry_id", "principal", "generation"]),
        "",
        hexLines("log_id", text(logId.log_id)),
      ].join("\n"),
    ],
    ["leaf-minimal", `${itemLines(text(minimal.encoded), LEAF_LABELS)}\n\n${hexLines("leaf hash", text(minimal.hash))}`],
    ["leaf-full", `${itemLines(text(full.encoded), LEAF_LABELS)}\n\n${hexLines("leaf hash", text(full.hash))}`],
    [
      "tree",
      [
        ...tree.leaf_hashes.slice(0, 5).map((hash, i) => hexLines(`leaf hash ${i}`, hash, 16)),
        "",
        ...tree.roots_by_size.slice(0, 6).map((root, size) => hexLines(`root of ${size}`, root, 16)),
      ].join("\n"),
    ],
    ["low-order", LOW_ORDER.join("\n")],
    [
      "registry",
      [
        "genesis",
        itemLines(text(genesis.encoded), RECORD_LABELS),
        hexLines("hash", text(genesis.hash)),
        signatures(genesis),
        "",
        "the next record, which adds a client key",
        itemLines(text(second.encoded), RECORD_LABELS),
        hexLines("hash", text(second.hash)),
        signatures(second),
      ].join("\n"),
    ],
    [
      "statement",
      [
        "the statement of the entry with everything, above, by another key",
        itemLines(text(statement.statement), STATEMENT_LABELS),
        "",
        hexLines("message", text(statement.message)),
        hexLines("seed", text(statement.seed)),
        hexLines("key", text(statement.key)),
        hexLines("signature", text(statement.signature)),
      ].join("\n"),
    ],
    [
      "checkpoint",
      [
        hexLines("seed", signer.seed ?? ""),
        hexLines("key", signer.key ?? ""),
        hexLines("key id", signer.key_id ?? ""),
        hexLines("root", text(checkpoint.root)),
        "",
        text(checkpoint.checkpoint).trimEnd(),
      ].join("\n"),
    ],
    [
      "tenant-log",
      [
        itemLines(text(tenantLog.encoded), ["version", "registry_id", "batch", "time", "heads"]),
        "",
        hexLines("leaf hash", text(tenantLog.hash)),
      ].join("\n"),
    ],
    ["bundle", (bundle.lines as unknown as string[]).map((line) => (line.length > 400 ? `${line.slice(0, 400)} ...` : line)).join("\n")],
  ]);
}

const EXAMPLE = /<!-- example: ([a-z-]+) -->\n(?:\n```text\n[\s\S]*?\n```\n)?/g;

/** The page with its examples as they are today. Throws where the page names one that there is not. */
export function fillExamples(page: string, examples: ReadonlyMap<string, string>): string {
  return page.replace(EXAMPLE, (_, name: string) => {
    const example = examples.get(name);
    if (example === undefined) throw new Error(`there is no example ${name}`);
    return `<!-- example: ${name} -->\n\n\`\`\`text\n${example}\n\`\`\`\n`;
  });
}
