import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareBytes, equalBytes, fromHex, toHex } from "../../../shared/bytes.ts";
import { decodeCbor } from "../../../shared/cbor/decode.ts";
import { encodeCbor } from "../../../shared/cbor/encode.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import type { HeadsLeaf, ListedHead } from "../../../shared/heads/leaf.ts";
import { decodeHeadsLeaf, encodeHeadsLeaf, HEADS_TAG, MAX_HEADS } from "../../../shared/heads/leaf.ts";
import { HeadsWalker } from "../../../shared/heads/walk.ts";
import { MAX_BUNDLE_ENTRY_BYTES } from "../../../shared/merkle/bundle.ts";
import { RightEdge } from "../../../shared/merkle/edge.ts";
import { leafHash } from "../../../shared/merkle/hash.ts";
import { signCheckpoint } from "../../../shared/note/checkpoint.ts";
import { encodeRecord, genesisRecord, OPS, ROLES } from "../../../shared/registry/record.ts";
import vectors from "../../vectors/tenant-log.json" with { type: "json" };

const hash = () => fc.uint8Array({ minLength: 32, maxLength: 32 });
const count = (min: number) =>
  fc.oneof(
    { arbitrary: fc.integer({ min, max: 300 }), weight: 3 },
    fc.integer({ min, max: Number.MAX_SAFE_INTEGER }),
  );
const head = (): fc.Arbitrary<ListedHead> =>
  fc.record({ logId: hash(), size: count(1), root: hash(), epoch: count(0) });
const leafOf = (): fc.Arbitrary<HeadsLeaf> =>
  fc.record({
    registryId: hash(),
    batch: count(1),
    time: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    heads: fc
      .uniqueArray(head(), { minLength: 1, maxLength: 20, selector: ({ logId }) => toHex(logId) })
      .map((heads) => heads.sort((a, b) => compareBytes(a.logId, b.logId))),
  });

describe("a leaf of heads", () => {
  it("is read back as it was, and written again as it was read", () => {
    fc.assert(
      fc.property(leafOf(), (leaf) => {
        const bytes = encodeHeadsLeaf(leaf);
        const read = decodeHeadsLeaf(bytes);
        expect(read).toEqual(leaf);
        expect(toHex(encodeHeadsLeaf(read as HeadsLeaf))).toBe(toHex(bytes));
      }),
    );
  });

  it("with any byte changed is refused, or reads as another leaf whose bytes are those", () => {
    fc.assert(
      fc.property(leafOf(), fc.nat(), fc.integer({ min: 1, max: 255 }), (leaf, at, change) => {
        const bytes = encodeHeadsLeaf(leaf);
        const place = at % bytes.length;
        bytes[place] = (bytes[place] ?? 0) ^ change;
        let read: HeadsLeaf | null;
        try {
          read = decodeHeadsLeaf(bytes);
        } catch (error) {
          expect(error).toHaveProperty("code");
          return;
        }
        if (read !== null) expect(toHex(encodeHeadsLeaf(read))).toBe(toHex(bytes));
      }),
      { numRuns: 500 },
    );
  });

  it("agrees with the published vector", () => {
    for (const vector of vectors.vectors) {
      const leaf = decodeHeadsLeaf(fromHex(vector.encoded));
      expect(leaf?.batch).toBe(vector.batch);
      expect(leaf?.time).toBe(BigInt(vector.time));
      expect(toHex(leaf?.registryId ?? new Uint8Array())).toBe(vector.registry_id);
      expect(leaf?.heads.map((one) => [toHex(one.logId), one.size, toHex(one.root), one.epoch])).toEqual(
        vector.heads,
      );
      expect(toHex(encodeHeadsLeaf(leaf as HeadsLeaf))).toBe(vector.encoded);
    }
  });

  const good = (): HeadsLeaf => ({
    registryId: new Uint8Array(32),
    batch: 1,
    time: 1n,
    heads: [1, 2].map((n) => ({
      logId: new Uint8Array(32).fill(n),
      size: n,
      root: new Uint8Array(32),
      epoch: 0,
    })),
  });
  const heads = good().heads as ListedHead[];
  const [one, two] = heads as [ListedHead, ListedHead];
  it.each<[string, Partial<HeadsLeaf>]>([
    ["a short registry id", { registryId: new Uint8Array(31) }],
    ["batch 0", { batch: 0 }],
    ["a time before the epoch", { time: -1n }],
    ["a time over 64 bits", { time: 2n ** 64n }],
    ["no heads", { heads: [] }],
    ["heads out of order", { heads: [two, one] }],
    ["a log twice", { heads: [one, one] }],
    ["an empty log's head", { heads: [{ ...one, size: 0 }] }],
    ["a short root", { heads: [{ ...one, root: new Uint8Array(31) }] }],
    ["a negative epoch", { heads: [{ ...one, epoch: -1 }] }],
  ])("is neither written nor read with %s", (_what, change) => {
    const leaf = { ...good(), ...change };
    expect(() => encodeHeadsLeaf(leaf)).toThrow(expect.objectContaining({ code: "malformed-heads" }));
    if (leaf.time > 2n ** 64n - 1n) return; // no such CBOR
    const bytes = encodeCbor([
      HEADS_TAG,
      leaf.registryId,
      leaf.batch,
      leaf.time,
      leaf.heads.map(({ logId, size, root, epoch }) => [logId, size, root, epoch]),
    ]);
    expect(() => decodeHeadsLeaf(bytes)).toThrow(expect.objectContaining({ code: "malformed-heads" }));
  });

  it("of another shape is refused, and one of another tag is none", () => {
    const value = decodeCbor(encodeHeadsLeaf(good())) as never[];
    for (const other of [
      [...value, 1],
      value.slice(0, 4),
      [...value.slice(0, 4), 1],
      [...value.slice(0, 3), "t", []],
    ]) {
      expect(() => decodeHeadsLeaf(encodeCbor(other as never))).toThrow(
        expect.objectContaining({ code: "malformed-heads" }),
      );
    }
    expect(decodeHeadsLeaf(encodeCbor(["runseal.heads.v2", 1]))).toBeNull();
  });

  it("holds 700 heads of the widest numbers within an entry of a bundle, and no more", () => {
    const widest = Array.from({ length: MAX_HEADS + 1 }, (_, i) => {
      const logId = new Uint8Array(32);
      new DataView(logId.buffer).setUint32(0, i);
      return { logId, size: Number.MAX_SAFE_INTEGER, root: logId, epoch: Number.MAX_SAFE_INTEGER };
    });
    const leaf = { ...good(), batch: Number.MAX_SAFE_INTEGER, time: 2n ** 64n - 1n };
    expect(encodeHeadsLeaf({ ...leaf, heads: widest.slice(1) }).length).toBeLessThanOrEqual(
      MAX_BUNDLE_ENTRY_BYTES,
    );
    expect(() => encodeHeadsLeaf({ ...leaf, heads: widest })).toThrow(
      expect.objectContaining({ code: "malformed-heads" }),
    );
  });
});

const signer = (n: number) => pureCrypto.signer(new Uint8Array(32).fill(n));
const ORIGIN = "log.example/t/00112233445566778899aabbccddeeff";
const genesis = genesisRecord({
  origin: ORIGIN,
  nonce: new Uint8Array(16),
  time: 0n,
  add: [
    { role: ROLES.audit, key: signer(1).publicKey },
    { role: ROLES.log, key: signer(2).publicKey },
  ],
});
const genesisBytes = encodeRecord(genesis);
const registryId = pureCrypto.sha256(genesisBytes);
const rotation = encodeRecord({
  epoch: 1,
  prev: registryId,
  time: 5n,
  op: OPS.rotate,
  add: [{ role: ROLES.log, key: signer(3).publicKey }],
  retire: [{ role: ROLES.log, key: signer(2).publicKey }],
  genesis: null,
});

const bytes32 = (n: number) => pureCrypto.sha256(new Uint8Array([n]));
const headAt = (log: number, size: number, epoch = 0, root = size): ListedHead => ({
  logId: bytes32(log),
  size,
  root: bytes32(root),
  epoch,
});
function heads(batch: number, time: bigint, ...list: ListedHead[]): Uint8Array {
  return encodeHeadsLeaf({
    registryId,
    batch,
    time,
    heads: list.sort((a, b) => compareBytes(a.logId, b.logId)),
  });
}

function walk(leaves: readonly Uint8Array[]): HeadsWalker {
  const walker = new HeadsWalker(pureCrypto, { registryId, withRecords: true });
  for (const leaf of leaves) walker.add(leaf);
  return walker;
}

function signed(leaves: readonly Uint8Array[], by = signer(2)): string {
  const edge = new RightEdge(pureCrypto);
  for (const leaf of leaves) edge.append(leafHash(pureCrypto, leaf));
  return signCheckpoint(pureCrypto, ORIGIN, [by], { origin: ORIGIN, size: edge.size, root: edge.root() });
}

const good = [
  genesisBytes,
  heads(1, 1n, headAt(1, 3), headAt(2, 5)),
  heads(2, 2n, headAt(1, 4)),
  rotation,
  heads(3, 6n, headAt(1, 4), headAt(2, 5)),
  heads(4, 6n, headAt(1, 9, 1), headAt(3, 1, 1)),
];
const codes = (walker: HeadsWalker) => walker.issues.map(({ code, index }) => `${code}@${index}`);

describe("a walk over a log of heads", () => {
  it("finds nothing wrong with a good one, and knows each log's last head", () => {
    const walker = walk(good);
    walker.end(signed(good, signer(3)), ORIGIN);
    expect(walker.issues).toEqual([]);
    expect([walker.size, walker.epoch]).toEqual([6, 1]);
    const at = (log: number) => {
      const seen = walker.heads.get(toHex(bytes32(log)));
      return [seen?.size, seen?.epoch, seen?.firstIndex, seen?.lastIndex, seen?.lastTime];
    };
    expect([at(1), at(2), at(3)]).toEqual([
      [9, 1, 5, 5, 6n],
      [5, 0, 1, 4, 6n],
      [1, 1, 5, 5, 6n],
    ]);
  });

  it.each<[string, Uint8Array[], string[]]>([
    ["a lowered head", [heads(5, 7n, headAt(1, 8, 1))], ["head-lowered@6"]],
    ["another head of the same size", [heads(5, 7n, headAt(1, 9, 1, 77))], ["head-forked@6"]],
    ["an epoch that falls", [heads(5, 7n, headAt(1, 10, 0))], ["epoch-regression@6"]],
    ["an epoch that no record began", [heads(5, 7n, headAt(1, 10, 2))], ["epoch-ahead@6"]],
    ["a batch left out", [heads(6, 7n, headAt(1, 10, 1))], ["batch-gap@6"]],
    ["a batch twice", [heads(4, 7n, headAt(1, 10, 1))], ["batch-gap@6"]],
    ["time that falls", [heads(5, 5n, headAt(1, 10, 1))], ["time-regression@6"]],
    ["a record twice", [rotation], ["broken-registry@6"]],
    ["bytes that are no leaf", [new Uint8Array([1])], ["malformed-leaf@6"]],
    ["a leaf of a later version", [encodeCbor(["runseal.heads.v2", 1])], ["unsupported-leaf@6"]],
  ])("finds %s", (_what, more, expected) => {
    expect(codes(walk([...good, ...more]))).toEqual(expected);
  });

  it("finds a list of another registry, and a genesis that is another's", () => {
    const foreign = new HeadsWalker(pureCrypto, { registryId: bytes32(9), withRecords: true });
    for (const leaf of good) foreign.add(leaf);
    expect(new Set(foreign.issues.map(({ code }) => code))).toEqual(
      new Set(["broken-registry", "foreign-registry", "epoch-ahead"]),
    );
  });

  it("demands a head by a log key of its registry, of this size and root", () => {
    const ends = (note: string, origin = ORIGIN) => {
      const walker = walk(good);
      walker.end(note, origin);
      return codes(walker);
    };
    expect(ends(signed(good, signer(1)))).toEqual(["unverified-checkpoint@6"]);
    expect(ends(signed(good.slice(1), signer(3)))).toEqual(["size-mismatch@6"]);
    expect(ends(signed([...good.slice(1), genesisBytes], signer(3)))).toEqual(["root-mismatch@6"]);
    expect(ends(signed(good, signer(3)), `${ORIGIN}x`)).toEqual(["unverified-checkpoint@6"]);
    expect(ends("no note")).toEqual(["unverified-checkpoint@6"]);
  });

  it("never accepts a head below one that it saw, whatever the order of the reports", () => {
    const report = fc.record({ log: fc.integer({ min: 1, max: 3 }), size: fc.integer({ min: 1, max: 6 }) });
    fc.assert(
      fc.property(fc.array(report, { maxLength: 20 }), (reports) => {
        const leaves = reports.map(({ log, size }, i) => heads(i + 1, BigInt(i), headAt(log, size)));
        const walker = walk([genesisBytes, ...leaves]);
        const most = new Map<number, number>();
        const lowered: number[] = [];
        reports.forEach(({ log, size }, i) => {
          if (size < (most.get(log) ?? 0)) lowered.push(i + 1);
          most.set(log, Math.max(size, most.get(log) ?? 0));
        });
        expect(walker.issues.map(({ code, index }) => [code, index])).toEqual(
          lowered.map((index) => ["head-lowered", index]),
        );
      }),
    );
  });

  it("gives the tree that the head commits to: any bit of any leaf counts", () => {
    fc.assert(
      fc.property(fc.nat(good.length - 1), fc.nat(), fc.integer({ min: 0, max: 7 }), (which, at, bit) => {
        const leaves = good.map((leaf) => leaf.slice());
        const leaf = leaves[which] as Uint8Array;
        const place = at % leaf.length;
        leaf[place] = (leaf[place] ?? 0) ^ (1 << bit);
        const walker = walk(leaves);
        walker.end(signed(good, signer(3)), ORIGIN);
        expect(walker.issues.length).toBeGreaterThan(0);
        expect(equalBytes(leaf, good[which] as Uint8Array)).toBe(false);
      }),
    );
  });
});
