/**
 * From an entry as it is sent to the bytes that a log orders: strict parsing, the kind's schema, canonical texts,
 * salts and commitments, all in one pass over the text. What the sender wrote is what is committed; nothing that a
 * validator returned is.
 *
 * @module
 */
import { fromHex, toHex } from "../bytes.ts";
import type { CryptoPort } from "../crypto/port.ts";
import { isOpaqueId } from "../ids.ts";
import { escapePointer } from "../json/pointer.ts";
import type { JsonReader } from "../json/reader.ts";
import { kindSpec, validateEntrySections } from "../kinds/catalogue.ts";
import { parseTime } from "../time.ts";
import type { SectionName } from "./commitment.ts";
import { FieldCommitter, SALT_BYTES, SECTIONS } from "./commitment.ts";
import { refuse } from "./entry-error.ts";
import { mayBeSpecial, readFieldForm } from "./field-form.ts";
import type { Actor, LeafBody, Reporter, TaggedSection } from "./leaf.ts";
import { encodeLeafBody, LEAF_OVERHEAD_BYTES, REPORTERS } from "./leaf.ts";
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
}

/** A section while it is read. */
interface SectionDraft {
  tag: string | null;
  /** Canonical texts of fields that come with their value. */
  readonly texts: Map<string, string>;
  /** Salts that the sender chose, by field. */
  readonly salts: Map<string, Uint8Array>;
  /** Commitments sent in place of values. */
  readonly commitments: Map<string, Uint8Array>;
}

interface Draft {
  id: string | null;
  kind: string | null;
  session: string | null;
  run: string | null;
  step: string | null;
  call: string | null;
  occurredAt: bigint | null;
  reporter: Reporter | null;
  actor: Actor | null;
  client: LeafBody["client"];
  readonly sections: Map<SectionName, SectionDraft>;
}

const POINTERS = { session: "/session", run: "/run", step: "/step", call: "/call" } as const;
const FIELD_NAME = /^[a-z0-9_.]{1,64}$/;
const TAG_MEMBER: Readonly<Record<SectionName, string | null>> = {
  action: null,
  authorization: "type",
  outcome: "status",
};

/** Text of a string member; anything else is refused. */
function stringAt(reader: JsonReader, pointer: string): string {
  if (reader.peek() !== "string") throw refuse("invalid-field", pointer, "a string is expected");
  return reader.readString();
}

function nullable<T>(
  reader: JsonReader,
  read: (reader: JsonReader, pointer: string) => T,
  pointer: string,
): T | null {
  if (reader.peek() !== "null") return read(reader, pointer);
  reader.readLiteral();
  return null;
}

function opaqueAt(reader: JsonReader, pointer: string): string {
  const text = stringAt(reader, pointer);
  if (!isOpaqueId(text))
    throw refuse("invalid-field", pointer, "an identifier has 1 to 128 of A-Z a-z 0-9 . _ : -");
  return text;
}

function hexAt(reader: JsonReader, pointer: string, bytes: number): Uint8Array {
  const text = stringAt(reader, pointer);
  if (text.length !== 2 * bytes || !/^[0-9a-f]*$/.test(text)) {
    throw refuse("invalid-field", pointer, `${bytes} bytes of lower-case hex are expected`);
  }
  return fromHex(text);
}

function hash32At(reader: JsonReader, pointer: string): Uint8Array {
  return hexAt(reader, pointer, 32);
}

function timeAt(reader: JsonReader, pointer: string): bigint {
  const text = stringAt(reader, pointer);
  try {
    return parseTime(text);
  } catch {
    throw refuse(
      "invalid-field",
      pointer,
      "a time is RFC 3339 with at most nine fractional digits, from 1970 on",
    );
  }
}

/** Reads an object's members through handlers by name. */
function objectAt(
  reader: JsonReader,
  pointer: string,
  members: Readonly<Record<string, (at: string) => void>>,
): void {
  if (reader.peek() !== "object") throw refuse("invalid-field", pointer, "an object is expected");
  reader.enterObject();
  for (let name = reader.nextKey(); name !== null; name = reader.nextKey()) {
    const at = `${pointer}/${escapePointer(name)}`;
    const handle = Object.hasOwn(members, name) ? members[name] : undefined;
    if (handle === undefined) throw refuse("unknown-field", at, "there is no such member");
    handle(at);
  }
}

function actorAt(reader: JsonReader, pointer: string): Actor {
  let type: string | null = null;
  let id: string | null = null;
  let codeHash: Uint8Array | null = null;
  objectAt(reader, pointer, {
    type: (at) => {
      type = opaqueAt(reader, at);
    },
    id: (at) => {
      id = opaqueAt(reader, at);
    },
    code_hash: (at) => {
      codeHash = nullable(reader, hash32At, at);
    },
  });
  if (type === null) throw refuse("missing-field", `${pointer}/type`, "an actor has a type");
  if (id === null) throw refuse("missing-field", `${pointer}/id`, "an actor has an id");
  return { type, id, codeHash };
}

function clientAt(reader: JsonReader, pointer: string): LeafBody["client"] {
  let key: Uint8Array | null = null;
  let signature: Uint8Array | null = null;
  objectAt(reader, pointer, {
    key: (at) => {
      key = hexAt(reader, at, 32);
    },
    signature: (at) => {
      signature = hexAt(reader, at, 64);
    },
  });
  if (key === null) throw refuse("missing-field", `${pointer}/key`, "a client signature names its key");
  if (signature === null)
    throw refuse("missing-field", `${pointer}/signature`, "a client names its signature");
  return { key, signature };
}

/** Takes a field that was sent in one of the special forms. */
function takeSpecial(draft: SectionDraft, name: string, text: string, pointer: string): void {
  const form = readFieldForm(text, pointer);
  if ("commitment" in form) {
    draft.commitments.set(name, form.commitment);
    return;
  }
  draft.texts.set(name, form.text);
  if (form.salt !== null) draft.salts.set(name, form.salt);
}

function sectionAt(reader: JsonReader, section: SectionName, pointer: string): SectionDraft {
  const draft: SectionDraft = { tag: null, texts: new Map(), salts: new Map(), commitments: new Map() };
  const tagMember = TAG_MEMBER[section];
  if (reader.peek() !== "object") throw refuse("invalid-field", pointer, "an object is expected");
  reader.enterObject();
  for (let name = reader.nextKey(); name !== null; name = reader.nextKey()) {
    if (name === tagMember) {
      draft.tag = stringAt(reader, `${pointer}/${tagMember}`);
      continue;
    }
    if (!FIELD_NAME.test(name)) {
      throw refuse("unknown-field", `${pointer}/${escapePointer(name)}`, "there is no such field");
    }
    const text = reader.readCanonical();
    // Most values are plain: their pointer is never needed.
    if (mayBeSpecial(text)) takeSpecial(draft, name, text, `${pointer}/${name}`);
    else draft.texts.set(name, text);
  }
  if (tagMember !== null && draft.tag === null) {
    throw refuse("missing-field", `${pointer}/${tagMember}`, `the section has a ${tagMember}`);
  }
  return draft;
}

function readDraft(reader: JsonReader): Draft {
  const draft: Draft = {
    id: null,
    kind: null,
    session: null,
    run: null,
    step: null,
    call: null,
    occurredAt: null,
    reporter: null,
    actor: null,
    client: null,
    sections: new Map(),
  };
  if (reader.peek() !== "object") throw refuse("invalid-field", "", "an entry is an object");
  reader.enterObject();
  for (let name = reader.nextKey(); name !== null; name = reader.nextKey()) {
    switch (name) {
      case "id":
        draft.id = opaqueAt(reader, "/id");
        break;
      case "kind":
        draft.kind = stringAt(reader, "/kind");
        break;
      case "session":
      case "run":
      case "step":
      case "call":
        draft[name] = nullable(reader, opaqueAt, POINTERS[name]);
        break;
      case "occurred_at":
        draft.occurredAt = nullable(reader, timeAt, "/occurred_at");
        break;
      case "reporter":
        draft.reporter = reporterAt(reader, "/reporter");
        break;
      case "actor":
        draft.actor = nullable(reader, actorAt, "/actor");
        break;
      case "client":
        draft.client = nullable(reader, clientAt, "/client");
        break;
      case "action":
        draft.sections.set(name, sectionAt(reader, name, "/action"));
        break;
      case "authorization":
      case "outcome": {
        const isNull = reader.peek() === "null";
        if (isNull) reader.readLiteral();
        else draft.sections.set(name, sectionAt(reader, name, `/${name}`));
        break;
      }
      default:
        throw refuse("unknown-field", `/${escapePointer(name)}`, "there is no such member");
    }
  }
  return draft;
}

function reporterAt(reader: JsonReader, pointer: string): Reporter {
  const text = stringAt(reader, pointer);
  const reporter = REPORTERS.find((one) => one === text);
  if (reporter === undefined)
    throw refuse("invalid-field", pointer, `a reporter is one of ${REPORTERS.join(", ")}`);
  return reporter;
}

const NO_FIELDS: ReadonlyMap<string, Uint8Array> = new Map();

/** Commitments of a section, and its values and salts as JSON text. */
function commitSection(
  context: PrepareContext,
  section: SectionName,
  draft: SectionDraft,
): { fields: Map<string, Uint8Array>; values: string; salts: string; bytes: number } {
  const fields = new Map(draft.commitments);
  const committer = new FieldCommitter(context.crypto);
  let values = "";
  let salts = "";
  let bytes = 0;
  for (const [name, text] of draft.texts) {
    const salt = draft.salts.get(name) ?? context.random(SALT_BYTES);
    const { commitment, textBytes } = committer.commit(section, name, salt, text);
    if (textBytes > MAX_VALUE_BYTES) {
      throw refuse("value-too-large", `/${section}/${name}`, "a value has at most 1 MiB");
    }
    bytes += textBytes;
    fields.set(name, commitment);
    const comma = values === "" ? "" : ",";
    values += `${comma}"${name}":${text}`;
    salts += `${comma}"${name}":"${toHex(salt)}"`;
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
  const spec = kindSpec(draft.kind);
  if (spec === undefined) throw refuse("unknown-kind", "/kind", "there is no such kind");
  if (spec.writer === "service" && context.writer !== "service") {
    throw refuse("unknown-kind", "/kind", "only the service writes entries of this kind");
  }
  const problem = validateEntrySections(
    spec,
    new Map(
      [...draft.sections].map(([name, { tag, texts, commitments }]) => [name, { tag, texts, commitments }]),
    ),
  );
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
  const encoded = encodeLeafBody(body);
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

/** The tool's name, where it is sent as a plain string short enough to be an index value. */
function toolOf(draft: Draft): string | undefined {
  const text = draft.sections.get("action")?.texts.get("tool");
  if (text === undefined || text.length > 1024 || !text.startsWith('"')) return undefined;
  return JSON.parse(text) as string;
}

function rowOf(body: LeafBody, draft: Draft, values: string, salts: string): string {
  const columns = JSON.stringify({
    i: body.id,
    k: body.kind,
    e: body.session ?? undefined,
    r: body.run ?? undefined,
    p: body.step ?? undefined,
    c: body.call ?? undefined,
    o: toolOf(draft),
    u: body.outcome?.tag,
  });
  return formatRow({ columns, values, salts });
}
