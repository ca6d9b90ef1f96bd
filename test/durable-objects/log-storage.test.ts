import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LogStorage } from "../../durable-objects/principal-log/storage.ts";
import { nativeCrypto } from "../../native/crypto.ts";

const Segments = fc.array(
  fc.record({
    count: fc.integer({ min: 1, max: 5 }),
    bytes: fc.integer({ min: 0, max: 40 }),
    text: fc.string({ unit: "grapheme", maxLength: 5 }),
  }),
  { minLength: 1, maxLength: 12 },
);

describe("the segments of a log", () => {
  it("tell what is after any entry: how many bytes, and when the oldest was recorded", async () => {
    await runInDurableObject(env.PRINCIPAL_LOG.getByName("segments"), (_log, state) => {
      fc.assert(
        fc.property(Segments, (segments) => {
          state.storage.sql.exec("DELETE FROM segments");
          const storage = new LogStorage(state.storage, nativeCrypto);
          const all: { last: number; bytes: number; at: number }[] = [];
          let firstSeq = 1;
          segments.forEach(({ count, bytes, text }, i) => {
            const recordedAtMs = 1000 + i * 10;
            storage.addSegment({ firstSeq, count, recordedAtMs, leaves: new Uint8Array(bytes), rows: text });
            firstSeq += count;
            all.push({
              last: firstSeq - 1,
              bytes: bytes + new TextEncoder().encode(text).length,
              at: recordedAtMs,
            });
          });
          const sum = (some: typeof all) => some.reduce((total, one) => total + one.bytes, 0);
          for (let seq = 0; seq < firstSeq; seq++) {
            const after = all.filter(({ last }) => last > seq);
            expect(storage.bytesAfter(seq)).toBe(sum(after));
            expect(storage.oldestAfter(seq)).toBe(after[0]?.at ?? null);
          }
        }),
        { numRuns: 40 },
      );
    });
  });

  it("are told apart, where they are missing: pruned ones have a time still, others are an error", async () => {
    await runInDurableObject(env.PRINCIPAL_LOG.getByName("pruned"), (_log, state) => {
      const storage = new LogStorage(state.storage, nativeCrypto);
      for (let i = 0; i < 6; i++) {
        const leaves = new Uint8Array(10);
        storage.addSegment({ firstSeq: 1 + 2 * i, count: 2, recordedAtMs: 100 + i, leaves, rows: "a" });
      }
      const firsts = (seq: number) => [...storage.segmentsFrom(seq)].map(({ firstSeq }) => firstSeq);
      expect([storage.prunedSeq, firsts(1)]).toEqual([0, [1, 3, 5, 7, 9, 11]]);
      storage.transaction(() => storage.prune(1, 4, 100));
      storage.transaction(() => storage.prune(5, 6, 102));
      expect([storage.prunedSeq, firsts(7), firsts(8)]).toEqual([6, [7, 9, 11], [7, 9, 11]]);
      expect([0, 3, 4, 5, 6, 7, 12].map((seq) => storage.oldestAfter(seq))).toEqual([
        100,
        100,
        102,
        102,
        103,
        103,
        null,
      ]);
      const missing = expect.objectContaining({ code: "storage-inconsistent" });
      // From memory and from storage alike.
      for (const one of [storage, new LogStorage(state.storage, nativeCrypto)]) {
        expect(() => [...one.segmentsFrom(6)]).toThrow(missing);
        expect([...one.segmentsFrom(7)].length).toBe(3);
      }
      state.storage.sql.exec("DELETE FROM segments WHERE first_seq = 9");
      const holed = new LogStorage(state.storage, nativeCrypto);
      expect(() => [...holed.segmentsFrom(7)]).toThrow(missing);
      expect([...holed.segmentsFrom(11)].length).toBe(1);
    });
  });
});
