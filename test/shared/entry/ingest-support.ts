/**
 * Entries on their way in and out again, as the service takes and answers them.
 *
 * @module
 */

import { nativeCrypto } from "../../../native/crypto.ts";
import { toBase64, toHex, utf8 } from "../../../shared/bytes.ts";
import { decodeLeaf } from "../../../shared/entry/decode-leaf.ts";
import type { Leaf } from "../../../shared/entry/leaf.ts";
import { LeafSealer } from "../../../shared/entry/leaf.ts";
import { entryText } from "../../../shared/entry/output.ts";
import type { BodyForm, ParsedBatch } from "../../../shared/entry/parse-batch.ts";
import { parseBatch } from "../../../shared/entry/parse-batch.ts";
import type { PrepareContext, PreparedEntry } from "../../../shared/entry/prepare.ts";
import { parseRow } from "../../../shared/entry/row.ts";
import { JsonReader } from "../../../shared/json/reader.ts";
import { leafHash } from "../../../shared/merkle/hash.ts";
import { bytesOf, T0 } from "../verify/test-tenant.ts";

/** A client's context, with salts and ids that count up. */
export function contextOf(changes: Partial<PrepareContext> = {}): PrepareContext {
  let salts = 0;
  let ids = 0;
  return {
    crypto: nativeCrypto,
    credential: bytesOf("credential", 16),
    defaultReporter: "agent",
    writer: "client",
    random: (count) => {
      salts += 1;
      return bytesOf(`salt/${salts}`, count);
    },
    newId: () => {
      ids += 1;
      return `made-${ids}`;
    },
    ...changes,
  };
}

/** Parses a body given as text or bytes. */
export function parse(
  body: string | Uint8Array,
  form: BodyForm = "json",
  context = contextOf(),
): ParsedBatch {
  return parseBatch(typeof body === "string" ? utf8(body) : body, form, context);
}

/** The one entry of a body, which must have been accepted. */
export function accepted(body: string, context = contextOf()): PreparedEntry {
  const [only] = parse(body, "json", context).entries;
  if (only?.ok !== true) throw new Error(`the entry was refused: ${JSON.stringify(only)}`);
  return only.entry;
}

/** Why the one entry of a body is refused: code and pointer. */
export function refusal(body: string, context = contextOf()): string {
  const [only] = parse(body, "json", context).entries;
  return only === undefined || only.ok ? "accepted" : `${only.problem.code} ${only.problem.pointer}`;
}

export interface Sealed {
  readonly leaf: Leaf;
  readonly values: string;
  readonly salts: string;
  /** The entry as it is answered. */
  readonly text: string;
}

/** Gives an entry a place in a log. */
export function seal({ body, row }: PreparedEntry): Sealed {
  const logId = bytesOf("log", 32);
  const bytes = new LeafSealer({ logId, epoch: 0, key: bytesOf("audit", 32) }).seal(1, logId, T0, body);
  const { values, salts } = parseRow(row);
  const leaf = decodeLeaf(bytes);
  const hash = toHex(leafHash(nativeCrypto, bytes));
  const text = entryText({ seq: 1, hash, leaf: toBase64(bytes), content: values }, leaf);
  return { leaf, values: values ?? "", salts: salts ?? "", text };
}

/** The canonical texts of an object's members. */
export function membersOf(text: string): Map<string, string> {
  const members = new Map<string, string>();
  const reader = new JsonReader(text);
  reader.enterObject();
  for (let name = reader.nextKey(); name !== null; name = reader.nextKey())
    members.set(name, reader.readCanonical());
  reader.finish();
  return members;
}

/** The canonical texts of a section of an entry as it is answered. */
export function sectionOf(text: string, section: string): Map<string, string> {
  return membersOf(membersOf(text).get(section) ?? "{}");
}
