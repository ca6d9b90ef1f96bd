/**
 * The bundle `bundle.v1` (design section 6): NDJSON with everything that offline verification needs. Line 1 names the
 * log; the registry records follow; then, for each entry in order, its leaf (or only its hash, where the leaf is
 * withheld or outside the exported range), its content and what is disclosed of it; last the checkpoint, and what
 * anchors it. docs/format.md is the specification.
 *
 * @module
 */
import { z } from "zod";
import { fromBase64, fromHex } from "../bytes.ts";
import { SECTIONS } from "../entry/commitment.ts";
import { RunsealError } from "../errors.ts";

const Hex32 = z.string().regex(/^[0-9a-f]{64}$/);
const Hex64 = z.string().regex(/^[0-9a-f]{128}$/);
const Seq = z.int().min(1);
const Fields = z.array(
  z.object({
    section: z.enum(SECTIONS),
    name: z.string(),
    salt: z.string().regex(/^[0-9a-f]{32}$/),
    /** Canonical JSON text, as a string: its bytes are what is committed. */
    text: z.string(),
  }),
);

export const BundleHeader = z.object({
  runseal: z.literal("bundle.v1"),
  registry_id: Hex32,
  origin: z.string(),
  from: z.int().min(1),
  to: z.int().min(0),
});
export type BundleHeader = z.infer<typeof BundleHeader>;

export const BundleLine = z.discriminatedUnion("t", [
  z.object({
    t: z.literal("registry"),
    epoch: z.int().min(0),
    record: z.string(),
    signatures: z.array(z.object({ key: Hex32, signature: Hex64 })),
  }),
  z.object({ t: z.literal("leaf"), seq: Seq, hash: Hex32, leaf: z.string() }),
  z.object({ t: z.literal("content"), seq: Seq, fields: Fields }),
  z.object({ t: z.literal("disclosure"), seq: Seq, fields: Fields }),
  z.object({ t: z.literal("hash"), seq: Seq, hash: Hex32 }),
  z.object({ t: z.literal("checkpoint"), checkpoint: z.string() }),
  z.looseObject({ t: z.literal("tenant") }),
  z.looseObject({ t: z.literal("cosignature") }),
]);
export type BundleLine = z.infer<typeof BundleLine>;
export type FieldLine = z.infer<typeof Fields>[number];

/** Characters of one line: an entry's content in JSON, with room for its escapes. */
export const MAX_LINE_CHARS = 16 * 1024 * 1024;

const KNOWN = new Set(BundleLine.options.map((option) => option.shape.t.value));

function parseJson(text: string): unknown {
  if (text.length > MAX_LINE_CHARS) throw new RunsealError("malformed-bundle", "a line of the bundle is too long");
  try {
    return JSON.parse(text);
  } catch {
    throw new RunsealError("malformed-bundle", "a line of the bundle is not JSON");
  }
}

/** Line 1. Throws `RunsealError` `malformed-bundle`, or `unsupported-bundle` for another version. */
export function parseBundleHeader(text: string): BundleHeader {
  const value = parseJson(text);
  const parsed = BundleHeader.safeParse(value);
  if (parsed.success) return parsed.data;
  const version = typeof value === "object" && value !== null && "runseal" in value ? value.runseal : undefined;
  if (typeof version === "string" && version !== "bundle.v1") {
    throw new RunsealError("unsupported-bundle", "the bundle is of a version that is not known here");
  }
  throw new RunsealError("malformed-bundle", "the first line is not the header of a bundle");
}

/** Any further line. Throws `RunsealError` `malformed-bundle`, or `unsupported-bundle` for an unknown `t`. */
export function parseBundleLine(text: string): BundleLine {
  const value = parseJson(text);
  const parsed = BundleLine.safeParse(value);
  if (parsed.success) return parsed.data;
  const t = typeof value === "object" && value !== null && "t" in value ? value.t : undefined;
  if (typeof t === "string" && !(KNOWN as ReadonlySet<string>).has(t)) {
    throw new RunsealError("unsupported-bundle", "the bundle has a line of a kind that is not known here");
  }
  throw new RunsealError("malformed-bundle", "a line of the bundle is not as the format demands");
}

/** Bytes of a base64 member. Throws `RunsealError("malformed-bundle")`. */
export function bundleBytes(text: string): Uint8Array {
  try {
    return fromBase64(text);
  } catch {
    throw new RunsealError("malformed-bundle", "a member of the bundle is not base64");
  }
}

/** Bytes of a member that the schema has checked to be hex. */
export function bundleHash(text: string): Uint8Array {
  return fromHex(text);
}
