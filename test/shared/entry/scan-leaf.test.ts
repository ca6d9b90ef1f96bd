import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { concat } from "../../../shared/bytes.ts";
import type { SectionName } from "../../../shared/entry/commitment.ts";
import { SECTIONS } from "../../../shared/entry/commitment.ts";
import { decodeLeaf } from "../../../shared/entry/decode-leaf.ts";
import type { Leaf } from "../../../shared/entry/leaf.ts";
import { encodeLeaf, REPORTERS, sectionCommitments } from "../../../shared/entry/leaf.ts";
import type { ScannedLeaf } from "../../../shared/entry/scan-leaf.ts";
import { scanAlone, scanLeaf } from "../../../shared/entry/scan-leaf.ts";

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const opaque = fc.stringMatching(/^[A-Za-z0-9._:-]{1,128}$/);
const name = fc.stringMatching(/^[a-z0-9_.]{1,64}$/);
const fields = fc
  .uniqueArray(fc.tuple(name, bytes(32)), { maxLength: 30, selector: ([key]) => key })
  .map((pairs) => new Map(pairs));
const nullable = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null });
const section = nullable(fc.record({ tag: name, fields }));

const leaves: fc.Arbitrary<Leaf> = fc.record({
  logId: bytes(32),
  seq: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
  prev: bytes(32),
  recordedAt: fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }),
  occurredAt: nullable(fc.bigInt({ min: 0n, max: (1n << 64n) - 1n })),
  id: opaque,
  kind: fc.constantFrom("run.created", "tool.call.started", "ext.acme.Thing-1", "a.b_c"),
  session: nullable(opaque),
  run: nullable(opaque),
  step: nullable(opaque),
  call: nullable(opaque),
  actor: nullable(fc.record({ type: opaque, id: opaque, codeHash: nullable(bytes(32)) })),
  submitter: fc.record({ credential: bytes(16), reporter: fc.constantFrom(...REPORTERS) }),
  action: fields,
  authorization: section,
  outcome: section,
  client: nullable(fc.record({ key: bytes(32), signature: bytes(64) })),
  epoch: fc.integer({ min: 0, max: 1_000_000 }),
  key: bytes(32),
});

function facts(leaf: ScannedLeaf): unknown[] {
  const { logId, seq, prev, timeHigh, timeLow, epoch, key, hasClient, fields: count } = leaf;
  return [logId, seq, prev, timeHigh, timeLow, epoch, key, hasClient, count].map((value) =>
    value instanceof Uint8Array ? [...value] : value,
  );
}

/** What is behind `start` bytes is the leaf. */
const behind = (start: number, leaf: Uint8Array) => concat(new Uint8Array(start).fill(9), leaf);

function factsOfDecoded(leaf: Leaf): unknown[] {
  const count = leaf.action.size + (leaf.authorization?.fields.size ?? 0) + (leaf.outcome?.fields.size ?? 0);
  return [
    [...leaf.logId],
    leaf.seq,
    [...leaf.prev],
    Number(leaf.recordedAt >> 32n),
    Number(leaf.recordedAt & 0xffff_ffffn),
    leaf.epoch,
    [...leaf.key],
    leaf.client !== null,
    count,
  ];
}

describe("the leaf scanner", () => {
  it("reads every leaf as the decoder does", () => {
    fc.assert(
      fc.property(leaves, (leaf) => {
        const encoded = encodeLeaf(leaf);
        const scanned = scanAlone(encoded);
        expect(scanned).not.toBeNull();
        if (scanned !== null) expect(facts(scanned)).toEqual(factsOfDecoded(decodeLeaf(encoded)));
      }),
    );
  });

  it("accepts nothing that the decoder refuses, whatever byte is changed, dropped or added", () => {
    const change = fc.record({ at: fc.nat(), to: fc.nat(255), how: fc.constantFrom("set", "drop", "add") });
    fc.assert(
      fc.property(leaves, fc.array(change, { minLength: 1, maxLength: 3 }), (leaf, changes) => {
        let mutated = [...encodeLeaf(leaf)];
        for (const { at, to, how } of changes) {
          const place = at % (mutated.length + 1);
          if (how === "set") mutated[Math.min(place, mutated.length - 1)] = to;
          else if (how === "drop") mutated = mutated.filter((_, i) => i !== place);
          else mutated.splice(place, 0, to);
        }
        const data = Uint8Array.from(mutated);
        const scanned = scanAlone(data);
        if (scanned !== null) expect(facts(scanned)).toEqual(factsOfDecoded(decodeLeaf(data)));
      }),
      { numRuns: 3000 },
    );
  });

  it("says what the decoder says of bytes that are no leaf", () => {
    expect(() => scanLeaf(new Uint8Array([0x94]))).toThrow(
      expect.objectContaining({ code: "malformed-cbor" }),
    );
  });
});

describe("a scanned leaf", () => {
  it("stands anywhere in its bytes", () => {
    fc.assert(
      fc.property(leaves, fc.integer({ min: 0, max: 3 }), (leaf, start) => {
        const scanned = scanLeaf(behind(start, encodeLeaf(leaf)), start);
        expect(facts(scanned)).toEqual(factsOfDecoded(leaf));
        expect(scanned.decode()).toEqual(leaf);
      }),
    );
  });

  it("has its own log id, link and key, and no other", () => {
    fc.assert(
      fc.property(leaves, fc.integer({ min: 0, max: 31 }), (leaf, at) => {
        const scanned = scanLeaf(encodeLeaf(leaf));
        const other = (bytes: Uint8Array) => bytes.with(at, (bytes[at] ?? 0) ^ 1);
        expect([scanned.hasLogId(leaf.logId), scanned.hasPrev(leaf.prev), scanned.hasKey(leaf.key)]).toEqual([
          true,
          true,
          true,
        ]);
        expect([
          scanned.hasLogId(other(leaf.logId)),
          scanned.hasPrev(other(leaf.prev)),
          scanned.hasKey(other(leaf.key)),
        ]).toEqual([false, false, false]);
        expect(scanned.hasKey(leaf.key.subarray(1))).toBe(false);
      }),
    );
  });

  it("commits to the fields that the decoder finds, with the commitments that it finds, and to no others", () => {
    fc.assert(
      fc.property(leaves, name, bytes(32), fc.nat(2), (leaf, absent, random, start) => {
        const scanned = scanLeaf(behind(start, encodeLeaf(leaf)), start);
        for (const section of SECTIONS as readonly SectionName[]) {
          const held = sectionCommitments(leaf, section);
          for (const [field, commitment] of held) {
            expect(scanned.commits(section, field, commitment)).toBe(true);
            expect(scanned.commits(section, field, commitment.with(31, (commitment[31] ?? 0) ^ 1))).toBe(
              false,
            );
            for (const near of [`${field}x`, field.slice(0, -1)]) {
              if (!held.has(near)) expect(scanned.commits(section, near, commitment)).toBe(false);
            }
          }
          if (!held.has(absent)) expect(scanned.commits(section, absent, random)).toBe(false);
        }
      }),
    );
  });
});
