import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fromHex, toHex } from "../../../shared/bytes.ts";
import { encodeCbor } from "../../../shared/cbor/encode.ts";
import { decodeLeaf } from "../../../shared/entry/decode-leaf.ts";
import type { Leaf } from "../../../shared/entry/leaf.ts";
import {
  compareFieldNames,
  encodeLeaf,
  encodeLeafBody,
  LEAF_OVERHEAD_BYTES,
  LeafSealer,
  REPORTERS,
  sectionCommitments,
} from "../../../shared/entry/leaf.ts";
import { decodeTagged } from "../../../shared/entry/tagged-array.ts";
import { RunsealError } from "../../../shared/errors.ts";
import { FULL, LEAVES, MINIMAL } from "../../vectors/make-leaves.ts";
import { readVectors } from "../../vectors/read.ts";

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const opaque = fc.stringMatching(/^[A-Za-z0-9._:-]{1,128}$/);
const fieldName = fc.stringMatching(/^[a-z0-9_.]{1,64}$/);
const fields = fc
  .dictionary(fieldName, bytes(32), { maxKeys: 30 })
  .map((all) => new Map(Object.entries(all)));
const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const counted = fc.oneof(fc.nat(), fc.maxSafeNat());

/** Any leaf that the format allows. */
const leaves: fc.Arbitrary<Leaf> = fc.record({
  logId: bytes(32),
  seq: counted.map((n) => Math.max(1, n)),
  prev: bytes(32),
  recordedAt: uint64,
  occurredAt: fc.option(uint64),
  id: opaque,
  kind: fc.stringMatching(/^[a-z0-9_]{1,20}(\.[A-Za-z0-9_-]{1,20}){1,4}$/),
  session: fc.option(opaque),
  run: fc.option(opaque),
  step: fc.option(opaque),
  call: fc.option(opaque),
  actor: fc.option(fc.record({ type: opaque, id: opaque, codeHash: fc.option(bytes(32)) })),
  submitter: fc.record({ credential: bytes(16), reporter: fc.constantFrom(...REPORTERS) }),
  action: fields,
  authorization: fc.option(fc.record({ tag: fieldName, fields })),
  outcome: fc.option(fc.record({ tag: fieldName, fields })),
  client: fc.option(fc.record({ key: bytes(32), signature: bytes(64) })),
  epoch: counted,
  key: bytes(32),
});

const codeOf = (data: Uint8Array): string => {
  try {
    decodeLeaf(data);
    return "accepted";
  } catch (error) {
    if (error instanceof RunsealError) return error.code;
    throw error;
  }
};

describe("a leaf", () => {
  it("is the same after encoding and decoding, and its bytes after decoding and encoding", () => {
    fc.assert(
      fc.property(leaves, (leaf) => {
        const encoded = encodeLeaf(leaf);
        const decoded = decodeLeaf(encoded);
        expect(decoded).toEqual(leaf);
        expect(toHex(encodeLeaf(decoded))).toBe(toHex(encoded));
      }),
      { numRuns: 200 },
    );
  });

  it("encodes as the general encoder would: array, text, bytes, maps in order", () => {
    fc.assert(
      fc.property(leaves, (leaf) => {
        const { actor, authorization, outcome, client, submitter } = leaf;
        const general = encodeCbor([
          "runseal.entry.v1",
          leaf.logId,
          leaf.seq,
          leaf.prev,
          leaf.recordedAt,
          leaf.occurredAt,
          leaf.id,
          leaf.kind,
          leaf.session,
          leaf.run,
          leaf.step,
          leaf.call,
          actor === null ? null : [actor.type, actor.id, actor.codeHash],
          [submitter.credential, submitter.reporter],
          leaf.action,
          authorization === null ? null : [authorization.tag, authorization.fields],
          outcome === null ? null : [outcome.tag, outcome.fields],
          client === null ? null : [client.key, client.signature],
          leaf.epoch,
          leaf.key,
        ]);
        expect(toHex(encodeLeaf(leaf))).toBe(toHex(general));
      }),
      { numRuns: 200 },
    );
  });

  it("sealed around a body is the leaf encoded whole, and the log adds no more bytes than it says", () => {
    for (const leaf of Object.values(LEAVES)) {
      const body = encodeLeafBody(leaf);
      const sealed = new LeafSealer(leaf).seal(leaf.seq, leaf.prev, leaf.recordedAt, body);
      expect(toHex(sealed)).toBe(toHex(encodeLeaf(leaf)));
      expect(sealed.length - body.length).toBeLessThanOrEqual(LEAF_OVERHEAD_BYTES);
    }
  });

  it("has its sequence number in the shortest form, and is hashed behind the byte 0x00", () => {
    const sizes = [1, 23, 24, 255, 256, 65_535, 65_536, 2 ** 32 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER];
    const sealer = new LeafSealer(FULL);
    const body = encodeLeafBody(FULL);
    for (const seq of sizes) {
      const sealed = sealer.seal(seq, FULL.prev, FULL.recordedAt, body);
      const place =
        toHex(encodeCbor(seq)) + toHex(encodeCbor(FULL.prev)) + toHex(encodeCbor(FULL.recordedAt));
      expect(toHex(sealed)).toContain(place);
      expect(decodeLeaf(sealed)).toEqual({ ...FULL, seq });
      expect(toHex(sealer.hashed(seq, FULL.prev, FULL.recordedAt, body))).toBe(`00${toHex(sealed)}`);
    }
    // Another time than the one before, as the next commit has it.
    const later = sealer.seal(7, FULL.prev, FULL.recordedAt + 1n, body);
    expect(decodeLeaf(later)).toEqual({ ...FULL, seq: 7, recordedAt: FULL.recordedAt + 1n });
  });

  it("with any byte changed is another leaf or none: there is one encoding for each", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.values(LEAVES)),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        (leaf, n, by) => {
          const encoded = encodeLeaf(leaf);
          const at = n % encoded.length;
          encoded[at] = (encoded[at] ?? 0) ^ by;
          let decoded: Leaf;
          try {
            decoded = decodeLeaf(encoded);
          } catch (error) {
            expect(error).toBeInstanceOf(RunsealError);
            return;
          }
          expect(toHex(encodeLeaf(decoded))).toBe(toHex(encoded));
          expect(decoded).not.toEqual(leaf);
        },
      ),
      { numRuns: 1000 },
    );
  });

  it("cut anywhere, or followed by anything, is refused", () => {
    const encoded = encodeLeaf(FULL);
    for (let end = 0; end < encoded.length; end++)
      expect(codeOf(encoded.subarray(0, end))).not.toBe("accepted");
    for (let byte = 0; byte < 256; byte++)
      expect(codeOf(Uint8Array.from([...encoded, byte]))).toBe("malformed-cbor");
  });

  it("that is none is refused, as malformed or as of another version", () => {
    const refused = readVectors<{ name: string; encoded: string; refused: string }[]>("leaf-refused");
    expect(refused.length).toBeGreaterThan(50);
    for (const { name, encoded, refused: expected } of refused) {
      const code = codeOf(fromHex(encoded));
      expect([name, code === "unsupported-leaf" ? "unsupported" : "malformed"]).toEqual([name, expected]);
      expect([name, code]).not.toEqual([name, "accepted"]);
    }
  });

  it("gives the commitments of each section, none where the section is absent", () => {
    expect([...sectionCommitments(FULL, "action").keys()]).toEqual(["tool", "args", "tool_call_id"]);
    expect([...sectionCommitments(FULL, "outcome").keys()]).toEqual(["result"]);
    expect(sectionCommitments(MINIMAL, "outcome").size).toBe(0);
    expect(sectionCommitments(MINIMAL, "authorization").size).toBe(0);
  });

  it("sorts its field names as dCBOR sorts their encodings", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fieldName, { minLength: 2, maxLength: 20 }), (names) => {
        const byEncoding = [...names].sort((a, b) => (toHex(encodeCbor(a)) < toHex(encodeCbor(b)) ? -1 : 1));
        expect([...names].sort(compareFieldNames)).toEqual(byEncoding);
      }),
    );
  });
});

describe("an array of another version", () => {
  it("is told by its first text, whatever else is in it", () => {
    expect(decodeTagged(fromHex("8161 61".replace(" ", "")), "b")).toBeNull();
    expect(decodeTagged(fromHex("816161"), "a")).toEqual(["a"]);
    // a, a half float: of another version; of this one it is refused.
    expect(decodeTagged(fromHex("826161f93e00"), "b")).toBeNull();
    expect(() => decodeTagged(fromHex("826161f93e00"), "a")).toThrow(RunsealError);
    // 24 and more items, and a text of 24 characters, have longer heads.
    const long = `9818781861${"61".repeat(23)}f93e00${"00".repeat(22)}`;
    expect(decodeTagged(fromHex(long), "b")).toBeNull();
  });

  it("is told only where the bytes are deterministic CBOR", () => {
    for (const hex of ["", "80", "8101", "61", "a0", "826161ff", "8261619f00ff", "8161ff", "816161f6"]) {
      expect(() => decodeTagged(fromHex(hex), "b"), hex).toThrow(RunsealError);
    }
  });
});
