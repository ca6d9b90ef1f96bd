import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { fromBase64, fromUtf8, toBase64, utf8 } from "../../../shared/bytes.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import { EMPTY_ROOT } from "../../../shared/merkle/hash.ts";
import { signCheckpoint } from "../../../shared/note/checkpoint.ts";
import { cosign } from "../../../shared/note/cosignature.ts";
import { addSignatures, parseNote, signNote } from "../../../shared/note/signed-note.ts";
import type { TlogProof } from "../../../shared/note/tlog-proof.ts";
import { formatTlogProof, parseTlogProof, verifyTlogProof } from "../../../shared/note/tlog-proof.ts";
import { logKey, witnessKey } from "../../../shared/note/vkey.ts";
import { describeWithShared, readSharedJson } from "../../support/shared-files.ts";
import { leafHashes, naivePath, naiveRoot } from "../merkle/naive-tree.ts";

const crypto = nativeCrypto;
const malformed = expect.objectContaining({ code: "malformed-proof" });

describeWithShared(
  "transparency-dev/formats' vectors of proofs",
  "vectors/extracted/formats-tlog-proof.json",
  () => {
    interface Vectors {
      marshal: { index: number; hashes: string[]; extra: string | null; checkpoint: string; text: string }[];
      errors: { name: string; text: string }[];
    }
    const vectors = () => readSharedJson<Vectors>("vectors/extracted/formats-tlog-proof.json");

    it("are written and read as published", () => {
      expect(vectors().marshal).toHaveLength(3);
      for (const { index, hashes, extra, checkpoint, text } of vectors().marshal) {
        const proof: TlogProof = {
          index,
          hashes: hashes.map(fromBase64),
          checkpoint,
          ...(extra === null ? {} : { extra: fromBase64(extra) }),
        };
        expect(formatTlogProof(proof)).toBe(text);
        expect(parseTlogProof(text)).toEqual(proof);
      }
    });

    it("are refused as published", () => {
      expect(vectors().errors).toHaveLength(7);
      for (const { name, text } of vectors().errors)
        expect(() => parseTlogProof(text), name).toThrow(malformed);
    });
  },
);

const ORIGIN = "log.example/1";
const LEAVES = leafHashes(60);
const log = crypto.signer(new Uint8Array(32).fill(1));
const witness = crypto.signer(new Uint8Array(32).fill(2));
const logKeys = [logKey(crypto, ORIGIN, log.publicKey)];
const witnessKeys = [witnessKey(crypto, "witness.example", witness.publicKey)];

function proofOf(index: number, size: number): TlogProof {
  const leaves = LEAVES.slice(0, size);
  const checkpoint = signCheckpoint(crypto, ORIGIN, [log], { origin: ORIGIN, size, root: naiveRoot(leaves) });
  return { index, hashes: naivePath(index, leaves), checkpoint };
}

const place = fc.integer({ min: 1, max: 60 }).chain((size) => fc.tuple(fc.nat(size - 1), fc.constant(size)));

describe("tlog proofs", () => {
  it("go to text and back, with and without extra data", () => {
    fc.assert(
      fc.property(place, fc.uint8Array({ maxLength: 20 }), ([index, size], extra) => {
        const proof = proofOf(index, size);
        expect(parseTlogProof(formatTlogProof(proof))).toEqual(proof);
        const read = parseTlogProof(formatTlogProof({ ...proof, extra }));
        expect(read).toEqual(extra.length > 0 ? { ...proof, extra } : proof);
      }),
      { numRuns: 30 },
    );
  });

  it("verify for the leaf that they are of and for no other, under both ports", () => {
    fc.assert(
      fc.property(place, fc.nat(59), ([index, size], other) => {
        const proof = parseTlogProof(formatTlogProof(proofOf(index, size)));
        for (const port of [nativeCrypto, pureCrypto]) {
          const check = verifyTlogProof(port, proof, LEAVES[index]!, ORIGIN, logKeys);
          expect(check).toMatchObject({ ok: true, checkpoint: { origin: ORIGIN, size } });
        }
        fc.pre(other !== index);
        expect(verifyTlogProof(crypto, proof, LEAVES[other]!, ORIGIN, logKeys)).toEqual({
          ok: false,
          reason: "root-mismatch",
        });
      }),
      { numRuns: 20 },
    );
  });

  it("do not verify with any bit of their text flipped", () => {
    const text = utf8(formatTlogProof(proofOf(11, 37)));
    let refused = 0;
    for (let bit = 0; bit < 8 * text.length; bit += 3) {
      const changed = text.slice();
      changed[bit >> 3]! ^= 1 << (bit & 7);
      try {
        const proof = parseTlogProof(fromUtf8(changed));
        if (!verifyTlogProof(crypto, proof, LEAVES[11]!, ORIGIN, logKeys).ok) refused++;
      } catch {
        refused++;
      }
    }
    expect(refused).toBe(Math.ceil((8 * text.length) / 3));
  });

  it("give the witnesses that cosigned, and need none", () => {
    const proof = proofOf(3, 9);
    const { text } = parseNote(proof.checkpoint);
    const cosigned = addSignatures(proof.checkpoint, [cosign(crypto, "witness.example", witness, text, 99n)]);
    const check = verifyTlogProof(
      crypto,
      { ...proof, checkpoint: cosigned },
      LEAVES[3]!,
      ORIGIN,
      logKeys,
      witnessKeys,
    );
    if (!check.ok) return expect.fail(check.reason);
    expect(check.signatures.map(({ name, timestamp }) => [name, timestamp])).toEqual([
      [ORIGIN, null],
      ["witness.example", 99n],
    ]);
    const without = verifyTlogProof(crypto, proof, LEAVES[3]!, ORIGIN, logKeys, witnessKeys);
    expect(without.ok && without.signatures).toHaveLength(1);
  });

  it("say why they do not verify", () => {
    const proof = proofOf(3, 9);
    const { text } = parseNote(proof.checkpoint);
    const verify = (changes: Partial<TlogProof>, keys = logKeys, origin = ORIGIN) =>
      verifyTlogProof(crypto, { ...proof, ...changes }, LEAVES[3]!, origin, keys, witnessKeys);
    const no = (reason: string) => ({ ok: false, reason });
    const other = signNote(crypto, text, [{ name: ORIGIN, signer: witness }]);
    const cosignedOnly = `${text}\n${addSignatures(proof.checkpoint, [
      cosign(crypto, "witness.example", witness, text, 99n),
    ])
      .split("\n")
      .at(-2)}\n`;
    const noCheckpoint = signNote(crypto, "text\n", [{ name: ORIGIN, signer: log }]);
    const spoiled = proof.checkpoint.replace("\n9\n", "\n8\n");
    expect(verify({ checkpoint: "checkpoint\n" })).toEqual(no("bad-checkpoint"));
    expect(verify({ checkpoint: noCheckpoint })).toEqual(no("bad-checkpoint"));
    expect(verify({ checkpoint: spoiled })).toEqual(no("bad-checkpoint"));
    expect(verify({ checkpoint: other })).toEqual(no("unsigned"));
    expect(verify({ checkpoint: cosignedOnly })).toEqual(no("unsigned"));
    expect(verify({}, [])).toEqual(no("unsigned"));
    expect(verify({}, logKeys, "log.example/2")).toEqual(no("other-origin"));
    expect(verify({ index: 9 })).toEqual(no("out-of-range"));
    expect(verify({ index: 2 })).toEqual(no("root-mismatch"));
    expect(verify({ hashes: proof.hashes.slice(1) })).toEqual(no("proof-length"));
    expect(verify({ hashes: proof.hashes.toReversed() })).toEqual(no("root-mismatch"));
  });

  const ROOT = toBase64(EMPTY_ROOT);
  const BAD: [string, string][] = [
    ["nothing", ""],
    ["no header", "index 0\n\nc\n"],
    ["no empty line", `c2sp.org/tlog-proof@v1\nindex 0\n${ROOT}\n`],
    ["no checkpoint", "c2sp.org/tlog-proof@v1\nindex 0\n\n"],
    ["no newline at the end", "c2sp.org/tlog-proof@v1\nindex 0\n\nc"],
    ["an index with a leading zero", "c2sp.org/tlog-proof@v1\nindex 00\n\nc\n"],
    ["an index over 2^53 - 1", "c2sp.org/tlog-proof@v1\nindex 9007199254740992\n\nc\n"],
    ["two spaces before the index", "c2sp.org/tlog-proof@v1\nindex  0\n\nc\n"],
    ["another word for index", "c2sp.org/tlog-proof@v1\nIndex 0\n\nc\n"],
    ["a hash of 31 bytes", `c2sp.org/tlog-proof@v1\nindex 0\n${toBase64(new Uint8Array(31))}\n\nc\n`],
    [
      "a hash with bits beyond its end",
      `c2sp.org/tlog-proof@v1\nindex 0\n${ROOT.replace("U=", "V=")}\n\nc\n`,
    ],
    ["64 hashes", `c2sp.org/tlog-proof@v1\nindex 0\n${`${ROOT}\n`.repeat(64)}\nc\n`],
    ["empty extra data", "c2sp.org/tlog-proof@v1\nextra \nindex 0\n\nc\n"],
    ["extra data twice", "c2sp.org/tlog-proof@v1\nextra AA==\nextra AA==\nindex 0\n\nc\n"],
    ["extra data after the index", "c2sp.org/tlog-proof@v1\nindex 0\nextra AA==\n\nc\n"],
    ["carriage returns", "c2sp.org/tlog-proof@v1\r\nindex 0\r\n\r\nc\r\n"],
  ];

  it.each(BAD)("are refused with %s", (_name, text) => {
    expect(() => parseTlogProof(text)).toThrow(malformed);
  });

  it("may have 63 hashes, and are not written where they could not be read", () => {
    const proof = proofOf(3, 9);
    const hashes = (count: number) => Array.from({ length: count }, () => EMPTY_ROOT);
    expect(parseTlogProof(formatTlogProof({ ...proof, hashes: hashes(63) })).hashes).toHaveLength(63);
    const bad: Partial<TlogProof>[] = [
      { hashes: hashes(64) },
      { hashes: [EMPTY_ROOT.subarray(1)] },
      { index: -1 },
      { index: 1.5 },
      { index: 2 ** 53 },
      { checkpoint: "" },
      { checkpoint: "no newline" },
    ];
    for (const changes of bad) expect(() => formatTlogProof({ ...proof, ...changes })).toThrow(malformed);
  });
});
