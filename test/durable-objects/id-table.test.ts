import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { IdIndex } from "../../durable-objects/principal-log/id-index.ts";
import type { IdHash } from "../../durable-objects/principal-log/id-table.ts";
import { IdTable, keyedHash } from "../../durable-objects/principal-log/id-table.ts";

/** Hashes that nearly all ids share, and ones that differ in the place alone: searches go far, and gaps close over them. */
const hashes: [string, () => IdHash][] = [
  ["its own hash", keyedHash],
  ["one hash for all", () => (_id, halves) => halves.fill(7)],
  [
    "few places, at the table's end too",
    () => (id, halves) => {
      halves[0] = 0xffff_fffd + (id.length % 5);
      halves[1] = id.charCodeAt(0);
    },
  ],
];

describe("the table of ids", () => {
  it("stays as it is, and right, where there is no memory to make it smaller", () => {
    const table = new IdTable();
    const ids = Array.from({ length: 5000 }, (_, i) => `id-${i + 1}`);
    for (const [i, id] of ids.entries()) table.add(id, i + 1);
    const { Uint32Array: own } = globalThis;
    globalThis.Uint32Array = class {
      constructor() {
        throw new RangeError("Array buffer allocation failed");
      }
    } as never;
    try {
      table.forgetUpTo(4900);
    } finally {
      globalThis.Uint32Array = own;
    }
    const find = (id: string) => table.find(id, (seq) => ids[seq - 1] === id);
    expect(ids.map(find)).toEqual(ids.map((_, i) => (i < 4900 ? undefined : i + 1)));
  });

  it.each(hashes)("finds what is in it and nothing else, however it grew and shrank: %s", (_name, make) => {
    const step = fc.oneof(
      fc.record({ add: fc.array(fc.string({ minLength: 1, maxLength: 4 }), { maxLength: 40 }) }),
      fc.record({ forget: fc.integer({ min: 0, max: 60 }) }),
    );
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2 ** 32 - 5000 }),
        fc.array(step, { maxLength: 40 }),
        (first, steps) => {
          const table = new IdTable(make());
          const model: { id: string; seq: number }[] = [];
          let next = first;
          const idOf = new Map<number, string>();
          const find = (id: string) => table.find(id, (seq) => idOf.get(seq) === id);
          for (const one of steps) {
            if ("add" in one) {
              for (const id of new Set(one.add)) {
                if (model.some((entry) => entry.id === id)) continue;
                idOf.set(next, id);
                table.add(id, next);
                model.push({ id, seq: next++ });
              }
            } else {
              const upTo = (model[0]?.seq ?? next) + one.forget - 1;
              table.forgetUpTo(upTo);
              while (model[0] !== undefined && model[0].seq <= upTo) idOf.delete(model.shift()?.seq ?? 0);
            }
            expect(table.count).toBe(model.length);
            if (model[0] !== undefined) expect(table.firstSeq).toBe(model[0].seq);
          }
          for (const { id, seq } of model) expect(find(id)).toBe(seq);
          for (const id of ["", "absent", "a", "zz"]) {
            expect(find(id)).toBe(model.find((entry) => entry.id === id)?.seq);
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  it("grows beyond its first room and gives it back", () => {
    const table = new IdTable();
    const isOf = (id: string) => (seq: number) => id === `id-${seq}`;
    for (let seq = 1; seq <= 50_000; seq++) table.add(`id-${seq}`, seq);
    for (const upTo of [0, 20_000, 49_000, 49_999]) {
      table.forgetUpTo(upTo);
      for (let seq = 1; seq <= 50_000; seq += 7) {
        expect(table.find(`id-${seq}`, isOf(`id-${seq}`))).toBe(seq > upTo ? seq : undefined);
      }
    }
  });

  it("hashes ids that differ in little to different places", () => {
    const hash = keyedHash();
    const halves = new Uint32Array(2);
    const whole = new Set<string>();
    const places = new Set<number>();
    for (let i = 0; i < 100_000; i++) {
      hash(`0193a5b2-0000-7000-8000-${i.toString(16).padStart(12, "0")}`, halves);
      whole.add(halves.join());
      places.add((halves[0] ?? 0) & 0x3ffff);
    }
    expect(whole.size).toBe(100_000);
    // Of 262,144 places a random hash fills 83,000.
    expect(places.size).toBeGreaterThan(80_000);
  });
});

describe("the memory of ids", () => {
  it("forgets seldom, and then many: a request that has asked D1 must ask again", () => {
    const index = new IdIndex(() => "");
    let seq = 0;
    for (let second = 0; second < 3600; second++) {
      for (let i = 0; i < 100; i++) index.add(`id-${seq}`, ++seq, 1_000_000 + 1000 * second);
      index.evict(seq);
    }
    // An hour of 100 entries a second: all of 17 minutes are kept, for there are not more than 100,000 of them.
    expect(index.evictions).toBeGreaterThan(0);
    expect(index.evictions).toBeLessThan(10);
    expect(seq - index.forgottenUpTo).toBeGreaterThanOrEqual(50_000);
    expect(seq - index.forgottenUpTo).toBeLessThanOrEqual(101_000);
  });

  it("keeps the ids of six minutes of a busy log, and not much more", () => {
    const index = new IdIndex(() => "");
    let seq = 0;
    for (let second = 0; second < 1800; second++) {
      for (let i = 0; i < 500; i++) index.add(`id-${seq}`, ++seq, 1_000_000 + 1000 * second);
      index.evict(seq);
      if (second < 600) continue;
      expect(seq - index.forgottenUpTo).toBeGreaterThanOrEqual(360 * 500);
      expect(seq - index.forgottenUpTo).toBeLessThanOrEqual(440 * 500);
    }
    expect(index.evictions).toBeLessThan(1800 / 60);
  });
});
