/**
 * The lines of a bundle, each kind with its members. docs/format.md, "Bundle", is the specification.
 *
 * @module
 */
import { SECTIONS } from "../entry/commitment.ts";
import type {
  BundleHeader,
  BundleLine,
  FieldLine,
  FieldsLine,
  ListingProof,
  RegistryLine,
} from "./format.ts";
import { BUNDLE_VERSION } from "./format.ts";
import { LeafBytes } from "./leaf-bytes.ts";
import { findText, LineReader, malformedLine } from "./line-reader.ts";
import { plainContentLine, plainLeafLine } from "./plain-lines.ts";

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

function listingProof(line: LineReader, more: Readonly<Record<string, () => void>> = {}): ListingProof {
  const out = { checkpoint: "", index: 0, leaf: "", path: [] as string[], consistency: [] as string[] };
  line.members({
    t: () => line.text(),
    ...more,
    checkpoint: () => {
      out.checkpoint = line.text();
    },
    index: () => {
      out.index = line.integer(0);
    },
    leaf: () => {
      out.leaf = line.text();
    },
    path: () => {
      out.path = line.elements(() => line.hex(32));
    },
    consistency: () => {
      out.consistency = line.elements(() => line.hex(32));
    },
  });
  return out;
}

function cosignatureLine(line: LineReader): BundleLine {
  let vkey = "";
  const proof = listingProof(line, {
    vkey: () => {
      vkey = line.text();
    },
  });
  return { t: "cosignature", vkey, ...proof };
}

/**
 * Any further line. Throws `BundleError`; `unsupported-bundle` for an unknown `t` or member.
 *
 * @param leaves where a leaf's bytes are decoded to, good until the next leaf's line
 */
export function parseBundleLine(text: string, leaves = new LeafBytes()): BundleLine {
  return (
    plainLeafLine(text, leaves) ??
    plainContentLine(text) ??
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
          return { t, ...listingProof(line) };
        case "cosignature":
          return cosignatureLine(line);
        case null:
          line.any();
          throw malformedLine("it does not name its kind");
        default:
          line.any();
          line.unsupported("it is of a kind that is not known here");
          // Never given out: the line is refused when it was read to its end.
          return { t: "checkpoint", checkpoint: "" };
      }
    })
  );
}
