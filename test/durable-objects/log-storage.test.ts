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
            for (let to = seq; to < firstSeq; to++) {
              expect(storage.bytesBetween(seq, to)).toBe(sum(after.filter(({ last }) => last <= to)));
            }
          }
        }),
        { numRuns: 40 },
      );
    });
  });
});
