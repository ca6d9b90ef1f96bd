/**
 * Reads the lines of a bundle strictly: a repeated member, an unpaired surrogate or a number that is not plain digits
 * means different things to different JSON libraries, so that two verifiers would judge two different bundles.
 *
 * @module
 */
import { SECTIONS } from "../entry/commitment.ts";
import { JsonError } from "../json/errors.ts";
import { JsonReader } from "../json/reader.ts";
import { RunsealError } from "../errors.ts";
import type { BundleHeader, BundleLine, FieldLine, FieldsLine, RegistryLine } from "./format.ts";
import { BUNDLE_VERSION, BundleError, MAX_LINE_CHARS } from "./format.ts";

const INTEGER = /^(?:0|[1-9][0-9]{0,15})$/;

function malformed(message: string, cut = false): BundleError {
  return new BundleError("malformed-bundle", message, cut);
}

/** Runs a reading of one line; whatever JSON refuses is a malformed bundle. */
function readingLine<T>(text: string, read: (reader: JsonReader) => T): T {
  if (text.length > MAX_LINE_CHARS) throw malformed("a line of the bundle is too long");
  const reader = new JsonReader(text);
  try {
    const out = read(reader);
    reader.finish();
    return out;
  } catch (error) {
    if (error instanceof BundleError || !(error instanceof RunsealError)) throw error;
    const isJson = error instanceof JsonError;
    const cut = isJson && error.code === "json-syntax" && error.offset >= text.length;
    throw malformed(isJson ? `not the JSON of a line: ${error.message}` : "a member is of a wrong type", cut);
  }
}

/** Members by name, each with what reads its value; all of them have to be there, and no others. */
type Members = Readonly<Record<string, (reader: JsonReader) => void>>;

function readMembers(reader: JsonReader, members: Members): void {
  let left = Object.keys(members).length;
  let unknown = false;
  reader.enterObject();
  for (let name = reader.nextKey(); name !== null; name = reader.nextKey()) {
    const read = Object.hasOwn(members, name) ? members[name] : undefined;
    if (read === undefined) {
      unknown = true;
      reader.readCanonical();
    } else {
      left -= 1;
      read(reader);
    }
  }
  if (left > 0) throw malformed("a member is missing");
  // A later version may say with it what this one would skip.
  if (unknown) throw new BundleError("unsupported-bundle", "a member is not known here");
}

function integer(reader: JsonReader, least: number): number {
  const literal = reader.readNumber();
  const value = INTEGER.test(literal) ? Number(literal) : -1;
  if (!Number.isSafeInteger(value) || value < least) throw malformed("a number is not as the format demands");
  return value;
}

function hex(reader: JsonReader, bytes: number): string {
  const text = reader.readString();
  if (text.length !== 2 * bytes || !/^[0-9a-f]*$/.test(text)) throw malformed("a member is not the hex demanded");
  return text;
}

function elements<T>(reader: JsonReader, read: () => T): T[] {
  const out: T[] = [];
  reader.enterArray();
  while (reader.nextElement()) out.push(read());
  return out;
}

/** The value of a member of the object, where it is a string; the rest is looked at by its syntax alone. */
function findText(text: string, member: string): string | null {
  const reader = new JsonReader(text);
  if (reader.peek() !== "object") return null;
  reader.enterObject();
  for (let name = reader.nextKey(); name !== null; name = reader.nextKey()) {
    if (name === member) return reader.peek() === "string" ? reader.readString() : null;
    reader.skipValue();
  }
  return null;
}

/** Reads the whole line as JSON, whatever it says: what is no JSON is malformed, not unsupported. */
function readAny(reader: JsonReader): void {
  reader.readCanonical();
  reader.finish();
}

const ignore = (reader: JsonReader): void => {
  reader.readString();
};

/** Line 1. Throws `BundleError`; `unsupported-bundle` for another version. */
export function parseBundleHeader(text: string): BundleHeader {
  return readingLine(text, (reader) => {
    const version = findText(text, "runseal");
    if (version === null) throw malformed("the first line is not the header of a bundle");
    if (version !== BUNDLE_VERSION) {
      readAny(reader);
      throw new BundleError("unsupported-bundle", "the bundle is of a version that is not known here");
    }
    const header = { runseal: BUNDLE_VERSION as typeof BUNDLE_VERSION, registry_id: "", origin: "", from: 0, to: 0 };
    readMembers(reader, {
      runseal: ignore,
      registry_id: (at) => {
        header.registry_id = hex(at, 32);
      },
      origin: (at) => {
        header.origin = at.readString();
      },
      from: (at) => {
        header.from = integer(at, 1);
      },
      to: (at) => {
        header.to = integer(at, 0);
      },
    });
    return header;
  });
}

function fieldOf(reader: JsonReader): FieldLine {
  const field = { section: SECTIONS[0] as FieldLine["section"], name: "", salt: "", text: "" };
  readMembers(reader, {
    section: (at) => {
      const text = at.readString();
      const section = SECTIONS.find((one) => one === text);
      if (section === undefined) throw malformed("a field is of no section");
      field.section = section;
    },
    name: (at) => {
      field.name = at.readString();
    },
    salt: (at) => {
      field.salt = hex(at, 16);
    },
    text: (at) => {
      field.text = at.readString();
    },
  });
  return field;
}

function signatureOf(reader: JsonReader): RegistryLine["signatures"][number] {
  const signature = { key: "", signature: "" };
  readMembers(reader, {
    key: (at) => {
      signature.key = hex(at, 32);
    },
    signature: (at) => {
      signature.signature = hex(at, 64);
    },
  });
  return signature;
}

function registryLine(reader: JsonReader): BundleLine {
  const line = { t: "registry" as const, epoch: 0, record: "", signatures: [] as RegistryLine["signatures"] };
  readMembers(reader, {
    t: ignore,
    epoch: (at) => {
      line.epoch = integer(at, 0);
    },
    record: (at) => {
      line.record = at.readString();
    },
    signatures: (at) => {
      line.signatures = elements(at, () => signatureOf(at));
    },
  });
  return line;
}

function leafLine(reader: JsonReader): BundleLine {
  const line = { t: "leaf" as const, seq: 0, hash: "", leaf: "" };
  readMembers(reader, {
    t: ignore,
    seq: (at) => {
      line.seq = integer(at, 1);
    },
    hash: (at) => {
      line.hash = hex(at, 32);
    },
    leaf: (at) => {
      line.leaf = at.readString();
    },
  });
  return line;
}

function hashLine(reader: JsonReader): BundleLine {
  const line = { t: "hash" as const, seq: 0, hash: "" };
  readMembers(reader, {
    t: ignore,
    seq: (at) => {
      line.seq = integer(at, 1);
    },
    hash: (at) => {
      line.hash = hex(at, 32);
    },
  });
  return line;
}

function fieldsLine(reader: JsonReader, t: FieldsLine["t"]): BundleLine {
  const line = { t, seq: 0, fields: [] as FieldLine[] };
  readMembers(reader, {
    t: ignore,
    seq: (at) => {
      line.seq = integer(at, 1);
    },
    fields: (at) => {
      line.fields = elements(at, () => fieldOf(at));
    },
  });
  return line;
}

function checkpointLine(reader: JsonReader): BundleLine {
  const line = { t: "checkpoint" as const, checkpoint: "" };
  readMembers(reader, {
    t: ignore,
    checkpoint: (at) => {
      line.checkpoint = at.readString();
    },
  });
  return line;
}

/** Any further line. Throws `BundleError`; `unsupported-bundle` for an unknown `t`. */
export function parseBundleLine(text: string): BundleLine {
  return readingLine(text, (reader) => {
    const t = findText(text, "t");
    switch (t) {
      case "registry":
        return registryLine(reader);
      case "leaf":
        return leafLine(reader);
      case "content":
      case "disclosure":
        return fieldsLine(reader, t);
      case "hash":
        return hashLine(reader);
      case "checkpoint":
        return checkpointLine(reader);
      case "tenant":
      case "cosignature":
        reader.readCanonical();
        return { t };
      case null:
        throw malformed("a line without its kind");
      default:
        readAny(reader);
        throw new BundleError("unsupported-bundle", "a line of a kind that is not known here");
    }
  });
}
