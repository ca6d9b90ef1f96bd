/**
 * Reads the members of an entry as it is sent, strictly and once: anything that an entry does not have is refused with
 * its pointer. Nothing is judged yet by the kind's schema.
 *
 * @module
 */
import { fromHex } from "../bytes.ts";
import { isOpaqueId } from "../ids.ts";
import { escapePointer } from "../json/pointer.ts";
import type { JsonReader } from "../json/reader.ts";
import { parseTime } from "../time.ts";
import type { SectionName } from "./commitment.ts";
import { refuse } from "./entry-error.ts";
import { mayBeSpecial, readFieldForm } from "./field-form.ts";
import type { Actor, LeafBody, Reporter } from "./leaf.ts";
import { REPORTERS } from "./leaf.ts";

/** A section while it is read. */
export interface SectionDraft {
  tag: string | null;
  /** Canonical texts of fields that come with their value. */
  readonly texts: Map<string, string>;
  /** Salts that the sender chose, by field. */
  readonly salts: Map<string, Uint8Array>;
  /** Commitments sent in place of values. */
  readonly commitments: Map<string, Uint8Array>;
}

export interface Draft {
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

export function readDraft(reader: JsonReader): Draft {
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
