/**
 * The lines of a bundle, each kind with its members. docs/format.md, "Bundle", is the specification.
 *
 * @module
 */
import { SECTIONS } from "../entry/commitment.ts";
import type { BundleHeader, BundleLine, FieldLine, FieldsLine, LeafLine, RegistryLine } from "./format.ts";
import { BUNDLE_VERSION, MAX_LINE_CHARS } from "./format.ts";
import { findText, LineReader, malformedLine } from "./line-reader.ts";

/** Line 1. Throws `BundleError`; `unsupported-bundle` for another version. */
export function parseBundleHeader(text: string): BundleHeader {
  return LineReader.read(text, (line) => {
    const header = {
      runseal: BUNDLE_VERSION as typeof BUNDLE_VERSION,
      registry_id: "",
      origin: "",
      from: 1,
      to: 0,
    };
    const version = findText(text, "runseal");
    if (version === null) {
      line.any();
      throw malformedLine("it is not the header of a bundle");
    }
    if (version !== BUNDLE_VERSION) {
      line.any();
      line.unsupported("the bundle is of a version that is not known here");
      return header;
    }
    line.members({
      runseal: () => line.text(),
      registry_id: () => {
        header.registry_id = line.hex(32);
      },
      origin: () => {
        header.origin = line.text();
      },
      from: () => {
        header.from = line.integer(1);
      },
      to: () => {
        header.to = line.integer(0);
      },
    });
    return header;
  });
}

function fieldOf(line: LineReader): FieldLine {
  const field = { section: SECTIONS[0] as FieldLine["section"], name: "", salt: "", text: "" };
  line.members({
    section: () => {
      const text = line.text();
      const section = SECTIONS.find((one) => one === text);
      if (section === undefined) throw malformedLine("a field is of no section");
      field.section = section;
    },
    name: () => {
      field.name = line.text();
    },
    salt: () => {
      field.salt = line.hex(16);
    },
    text: () => {
      field.text = line.text();
    },
  });
  return field;
}

function signatureOf(line: LineReader): RegistryLine["signatures"][number] {
  const signature = { key: "", signature: "" };
  line.members({
    key: () => {
      signature.key = line.hex(32);
    },
    signature: () => {
      signature.signature = line.hex(64);
    },
  });
  return signature;
}

function registryLine(line: LineReader): BundleLine {
  const out = { t: "registry" as const, epoch: 0, record: "", signatures: [] as RegistryLine["signatures"] };
  line.members({
    t: () => line.text(),
    epoch: () => {
      out.epoch = line.integer(0);
    },
    record: () => {
      out.record = line.text();
    },
    signatures: () => {
      out.signatures = line.elements(() => signatureOf(line));
    },
  });
  return out;
}

function leafLine(line: LineReader): BundleLine {
  const out = { t: "leaf" as const, seq: 0, hash: "", leaf: "" };
  line.members({
    t: () => line.text(),
    seq: () => {
      out.seq = line.integer(1);
    },
    hash: () => {
      out.hash = line.hex(32);
    },
    leaf: () => {
      out.leaf = line.text();
    },
  });
  return out;
}

function hashLine(line: LineReader): BundleLine {
  const out = { t: "hash" as const, seq: 0, hash: "" };
  line.members({
    t: () => line.text(),
    seq: () => {
      out.seq = line.integer(1);
    },
    hash: () => {
      out.hash = line.hex(32);
    },
  });
  return out;
}

function fieldsLine(line: LineReader, t: FieldsLine["t"]): BundleLine {
  const out = { t, seq: 0, fields: [] as FieldLine[] };
  line.members({
    t: () => line.text(),
    seq: () => {
      out.seq = line.integer(1);
    },
    fields: () => {
      out.fields = line.elements(() => fieldOf(line));
    },
  });
  return out;
}

function checkpointLine(line: LineReader): BundleLine {
  const out = { t: "checkpoint" as const, checkpoint: "" };
  line.members({
    t: () => line.text(),
    checkpoint: () => {
      out.checkpoint = line.text();
    },
  });
  return out;
}

/** Any further line. Throws `BundleError`; `unsupported-bundle` for an unknown `t` or member. */
export function parseBundleLine(text: string): BundleLine {
  return (
    plainLeafLine(text) ??
    LineReader.read(text, (line): BundleLine => {
      const t = findText(text, "t");
      switch (t) {
        case "registry":
          return registryLine(line);
        case "leaf":
          return leafLine(line);
        case "content":
        case "disclosure":
          return fieldsLine(line, t);
        case "hash":
          return hashLine(line);
        case "checkpoint":
          return checkpointLine(line);
        case "tenant":
        case "cosignature":
          line.any();
          return { t };
        case null:
          line.any();
          throw malformedLine("it does not name its kind");
        default:
          line.any();
          line.unsupported("it is of a kind that is not known here");
          // Never given out: the line is refused when it was read to its end.
          return { t: "tenant" };
      }
    })
  );
}

const LEAF_START = '{"t":"leaf","seq":';
const HASH_START = ',"hash":"';
const LEAF_MEMBER = '","leaf":"';
const LEAF_END = '"}';
const HASH_DIGITS = 64;

/**
 * A leaf line exactly as an export writes it, told without a JSON reader: most lines of a bundle are such. Null for
 * any other text, which the reader judges. Neither member may have a character that JSON would escape or refuse.
 */
function plainLeafLine(text: string): LeafLine | null {
  if (!text.startsWith(LEAF_START) || text.length > MAX_LINE_CHARS) return null;
  const seqEnd = text.indexOf(",", LEAF_START.length);
  const digits = text.slice(LEAF_START.length, seqEnd);
  const hashAt = seqEnd + HASH_START.length;
  const leafAt = hashAt + HASH_DIGITS + LEAF_MEMBER.length;
  const plain =
    /^[1-9][0-9]{0,14}$/.test(digits) &&
    text.startsWith(HASH_START, seqEnd) &&
    text.startsWith(LEAF_MEMBER, hashAt + HASH_DIGITS) &&
    text.endsWith(LEAF_END) &&
    // The first quote after the leaf's start is the one that ends it, and no escape comes before.
    text.indexOf('"', leafAt) === text.length - LEAF_END.length;
  if (!plain) return null;
  const hash = text.slice(hashAt, hashAt + HASH_DIGITS);
  const leaf = text.slice(leafAt, text.length - LEAF_END.length);
  if (!/^[0-9a-f]{64}$/.test(hash) || !/^[A-Za-z0-9+/=]*$/.test(leaf)) return null;
  return { t: "leaf", seq: Number(digits), hash, leaf };
}
