/**
 * From an entry as it is sent to the bytes that a log orders: strict parsing, the kind's schema, canonical texts,
 * salts and commitments, all in one pass over the text. What the sender wrote is what is committed; nothing that a
 * validator returned is.
 *
 * @module
 */
import { toHex } from "../bytes.ts";
import type { CryptoPort } from "../crypto/port.ts";
import type { JsonReader } from "../json/reader.ts";
import { type Extensions, kindSpec, validateEntrySections } from "../kinds/catalogue.ts";
import { Slab } from "../slab.ts";
import { columnsText } from "./columns.ts";
import type { SectionName } from "./commitment.ts";
import { FieldCommitter, SALT_BYTES, SECTIONS } from "./commitment.ts";
import type { Draft, SectionDraft } from "./draft.ts";
import { readDraft } from "./draft.ts";
import { refuse } from "./entry-error.ts";
import type { LeafBody, Reporter, TaggedSection } from "./leaf.ts";
import { encodeLeafBody, LEAF_OVERHEAD_BYTES } from "./leaf.ts";
import { MAX_ENTRY_BYTES, MAX_FIELDS, MAX_LEAF_BYTES, MAX_VALUE_BYTES } from "./limits.ts";
import { formatRow } from "./row.ts";

export { EntryError } from "./entry-error.ts";

/** An entry, ready for its log. */
export interface PreparedEntry {
  readonly id: string;
  readonly kind: string;
  /** The encoded middle of the leaf (see leaf.ts). */
  readonly body: Uint8Array;
  /** What D1 will hold beside the leaf (see row.ts). */
  readonly row: string;
}

export interface PrepareContext {
  readonly crypto: CryptoPort;
  /** Credential id of the submitter, 16 bytes. */
  readonly credential: Uint8Array;
  /** Where the sender names no reporter. */
  readonly defaultReporter: Reporter;
  /** Whether kinds that only the service writes are allowed. */
  readonly writer: "client" | "service";
  /** `count` random bytes. */
  readonly random: (count: number) => Uint8Array;
  /** An id for an entry that has none. */
  readonly newId: () => string;
  /** Checks the client's signature over the statement; absent: no client key is known. */
  readonly verifyClient?: (body: LeafBody) => boolean;
  /** What the tenant declared of kinds of its own; absent: they are taken with any fields. */
  readonly extensions?: Extensions;
}

/** Bodies live until they are on their way to the log. */
const bodies = new Slab();

const NO_FIELDS: ReadonlyMap<string, Uint8Array> = new Map();

/** Commitments of a section, and its values and salts as JSON text. */
function commitSection(
  context: PrepareContext,
  section: SectionName,
  draft: SectionDraft,
): { fields: Map<string, Uint8Array>; values: string; salts: string; bytes: number } {
  const fields = new Map(draft.commitments);
  const committer = new FieldCommitter(context.crypto);
  // Drawn and written as hex for all fields at once: a call for each costs more than its bytes.
  const drawn = context.random(draft.texts.size * SALT_BYTES);
  const drawnHex = toHex(drawn);
  let values = "";
  let salts = "";
  let bytes = 0;
  let at = 0;
  for (const [name, text] of draft.texts) {
    const chosen = draft.salts.get(name);
    const salt = chosen ?? drawn.subarray(at, at + SALT_BYTES);
    const saltHex = chosen === undefined ? drawnHex.slice(2 * at, 2 * (at + SALT_BYTES)) : toHex(chosen);
    at += SALT_BYTES;
    const { commitment, textBytes } = committer.commit(section, name, salt, text);
    if (textBytes > MAX_VALUE_BYTES) {
      throw refuse("value-too-large", `/${section}/${name}`, "a value has at most 1 MiB");
    }
    bytes += textBytes;
    fields.set(name, commitment);
    const comma = values === "" ? "" : ",";
    values += `${comma}"${name}":${text}`;
    salts += `${comma}"${name}":"${saltHex}"`;
  }
  return { fields, values, salts, bytes };
}

/**
 * Reads one entry at the reader's position and prepares it.
 *
 * @throws `EntryError` or `JsonError`, both with a pointer relative to the entry; `json-syntax` where the text is no
 * JSON at all
 */
export function prepareEntry(reader: JsonReader, context: PrepareContext): PreparedEntry {
  const draft = readDraft(reader);
  if (draft.kind === null) throw refuse("missing-field", "/kind", "an entry has a kind");
  const spec = kindSpec(draft.kind, context.extensions);
  if (spec === undefined) throw refuse("unknown-kind", "/kind", "there is no such kind");
  if (spec.writer === "service" && context.writer !== "service") {
    throw refuse("unknown-kind", "/kind", "only the service writes entries of this kind");
  }
  const problem = validateEntrySections(spec, draft.sections);
  if (problem !== null) {
    throw refuse(
      problem.code === "unknown-section" ? "unknown-field" : problem.code,
      problem.pointer,
      problem.message,
    );
  }
  let count = 0;
  let bytes = 0;
  const values: string[] = [];
  const salts: string[] = [];
  const committed = new Map<SectionName, Map<string, Uint8Array>>();
  for (const section of SECTIONS) {
    const part = draft.sections.get(section);
    if (part === undefined) continue;
    count += part.texts.size + part.commitments.size;
    if (count > MAX_FIELDS) throw refuse("too-many-fields", `/${section}`, "an entry has at most 128 fields");
    const result = commitSection(context, section, part);
    bytes += result.bytes;
    committed.set(section, result.fields);
    values.push(`"${section}":{${result.values}}`);
    salts.push(`"${section}":{${result.salts}}`);
  }
  if (bytes > MAX_ENTRY_BYTES) throw refuse("entry-too-large", "", "an entry has at most 1.5 MiB of values");
  const body: LeafBody = {
    occurredAt: draft.occurredAt,
    id: draft.id ?? context.newId(),
    kind: draft.kind,
    session: draft.session,
    run: draft.run,
    step: draft.step,
    call: draft.call,
    actor: draft.actor,
    submitter: { credential: context.credential, reporter: draft.reporter ?? context.defaultReporter },
    action: committed.get("action") ?? NO_FIELDS,
    authorization: taggedOf(draft, committed, "authorization"),
    outcome: taggedOf(draft, committed, "outcome"),
    client: draft.client,
  };
  if (body.client !== null && context.verifyClient?.(body) !== true) {
    throw refuse(
      "unknown-client-key",
      "/client",
      "the key is not registered, or its signature does not verify",
    );
  }
  const encoded = encodeLeafBody(body, bodies);
  if (encoded.length + LEAF_OVERHEAD_BYTES > MAX_LEAF_BYTES) {
    throw refuse("leaf-too-large", "", "the signed bytes of an entry are at most 16 KiB");
  }
  return {
    id: body.id,
    kind: body.kind,
    body: encoded,
    row: rowOf(body, draft, `{${values.join(",")}}`, `{${salts.join(",")}}`),
  };
}

function taggedOf(
  draft: Draft,
  committed: ReadonlyMap<SectionName, Map<string, Uint8Array>>,
  section: "authorization" | "outcome",
): TaggedSection | null {
  const tag = draft.sections.get(section)?.tag;
  return tag === undefined || tag === null ? null : { tag, fields: committed.get(section) ?? NO_FIELDS };
}

function rowOf(body: LeafBody, draft: Draft, values: string, salts: string): string {
  const columns = columnsText(body, draft.sections.get("action")?.texts.get("tool"));
  return formatRow({ columns, values, salts });
}
