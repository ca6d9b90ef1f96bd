import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toHex } from "../../../shared/bytes.ts";
import { brief, fileOf, grow, logPlans, SMALL_PLANS, spans, verifyBytes, verifyLines } from "./random-log.ts";
import { fieldsLine, leafLine, TestLog, TestTenant } from "./test-tenant.ts";

/** Few of the long logs, which take time, and more of the short ones. */
const LONG = { most: 2000, runs: { numRuns: 12 } };
const SHORT = { most: 150, runs: { numRuns: 40 } };

/** A log, and numbers to pick places with. */
const logsAndPicks = (most: number) => fc.tuple(logPlans(most), fc.nat(), fc.nat(), fc.nat());
const pick = (n: number, among: number) => n % among;

describe("valid logs", () => {
  it("are intact, in whatever batches they grew, as a whole, in part, and with leaves and values withheld", () => {
    fc.assert(
      fc.property(logsAndPicks(LONG.most), ([plan, a, b, c]) => {
        const { log } = grow(plan);
        const size = log.entries.length;
        const from = 1 + pick(a, size + 1);
        const to = from - 1 + pick(b, size - from + 2);
        const given = { registryId: log.tenant.registryId };
        const whole = verifyBytes(fileOf(log.lines()), given, 1 + pick(c, 5000));
        expect(brief(whole)).toEqual({ verdict: "intact", codes: [] });
        expect(whole).toMatchObject({ pinned: true, checked: size, last: { seq: size } });
        const part = verifyLines(log.lines({ from, to, values: c % 2 === 0 }), given);
        expect(brief(part)).toEqual({ verdict: "intact", codes: [] });
        expect(part.checked).toBe(to - from + 1);
        const withheld = verifyLines(log.lines({ withhold: [1 + pick(a, size), 1 + pick(b, size)] }), given);
        expect(brief(withheld)).toEqual({ verdict: "intact", codes: [] });
        expect(withheld.not_checked?.join()).toContain("only their hashes");
      }),
      LONG.runs,
    );
  });

  it("are intact with 2,000 entries, and hold with every head that was signed on the way", () => {
    const plan = {
      kinds: 3,
      batches: [1, 2, 997, 500, 250, 250].map((size, i) => ({ size, rotate: i % 2 === 1 })),
    };
    const { log, heads } = grow(plan);
    expect(log.entries.length).toBe(2000);
    const lines = log.lines();
    for (const { size, checkpoint, hash } of heads) {
      const report = verifyLines(lines, { checkpoint, keptHead: { seq: size, hash: toHex(hash) } });
      expect(brief(report)).toEqual({ verdict: "intact", codes: [] });
      expect(report).toMatchObject({ pinned: true, kept_head: { matches: true } });
    }
  });
});

/** The members of a line in which a flipped bit may move the place: the number itself is what was altered. */
const SEQ_MEMBER = /"seq":[0-9]+/;

describe("a single bit flipped", () => {
  const grown = SMALL_PLANS.map((plan) => {
    const { log } = grow(plan);
    const lines = log.lines();
    return { log, lines, file: fileOf(lines) };
  });

  it("is found in every line, and the verdict names the entry that it belongs to", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...grown),
        fc.nat(),
        fc.nat(),
        fc.nat(7),
        ({ log, lines, file }, a, b, bit) => {
          const size = log.entries.length;
          const index = pick(a, lines.length);
          const text = lines[index] ?? "";
          const before = fileOf(lines.slice(0, index)).length - (index === 0 ? 1 : 0);
          const at = before + pick(b, fileOf([text]).length - 1);
          const flipped = file.slice();
          flipped[at] = (flipped[at] ?? 0) ^ (1 << bit);
          const report = verifyBytes(flipped, { registryId: log.tenant.registryId });
          expect(report.verdict).not.toBe("intact");
          const { t, seq } = JSON.parse(text) as { t?: string; seq?: number };
          const member = SEQ_MEMBER.exec(text);
          const inSeq =
            member !== null && at - before >= member.index && at - before < member.index + member[0].length;
          const found = report.break?.seq;
          // Before the first leaf is read there is no place yet; the detail names the line.
          if (t === "leaf" && !inSeq) expect(seq === 1 ? [0, 1] : [seq]).toContain(found);
          if (t === "content") expect([seq, (seq ?? 0) + 1]).toContain(found);
          if (t === "registry") expect(found).toBe(0);
          if (t === "checkpoint") expect([size, size + 1]).toContain(found);
        },
      ),
      { numRuns: 1000 },
    );
  });
});

describe("an entry", () => {
  it("dropped is found at the place after it, or as a truncated log", () => {
    fc.assert(
      fc.property(logsAndPicks(LONG.most), ([plan, a]) => {
        const { log } = grow(plan);
        const size = log.entries.length;
        const seq = 1 + pick(a, size);
        const lines = log.lines();
        const [first, after] = spans(lines).get(seq) ?? [0, 0];
        const report = verifyLines([...lines.slice(0, first), ...lines.slice(after)]);
        expect(brief(report)).toEqual(
          seq === size
            ? { verdict: "broken", seq, kind: "truncated", codes: [`truncated at ${seq}`] }
            : { verdict: "broken", seq: seq + 1, kind: "missing", codes: [`sequence-gap at ${seq + 1}`] },
        );
      }),
      LONG.runs,
    );
  });

  it("doubled is found where it comes again", () => {
    fc.assert(
      fc.property(logsAndPicks(LONG.most), ([plan, a, b]) => {
        const { log } = grow(plan);
        const size = log.entries.length;
        const seq = 1 + pick(a, size);
        const lines = log.lines();
        const places = spans(lines);
        const [first, after] = places.get(seq) ?? [0, 0];
        const entry = lines.slice(first, after);
        const later = places.get(seq + pick(b, size - seq + 1))?.[1] ?? 0;
        const report = verifyLines([...lines.slice(0, later), ...entry, ...lines.slice(later)]);
        expect(brief(report)).toEqual({
          verdict: "broken",
          seq,
          kind: "duplicate",
          codes: [`duplicate-entry at ${seq}`],
        });
      }),
      LONG.runs,
    );
  });

  it("swapped with another is found where the order breaks first", () => {
    fc.assert(
      fc.property(logsAndPicks(LONG.most), ([plan, a, b]) => {
        const { log } = grow(plan);
        const size = log.entries.length;
        fc.pre(size > 1);
        const j = 1 + pick(a, size - 1);
        const k = j + 1 + pick(b, size - j);
        const lines = log.lines();
        const places = spans(lines);
        const [j0, j1] = places.get(j) ?? [0, 0];
        const [k0, k1] = places.get(k) ?? [0, 0];
        const whole = [
          ...lines.slice(0, j0),
          ...lines.slice(k0, k1),
          ...lines.slice(j1, k0),
          ...lines.slice(j0, j1),
          ...lines.slice(k1),
        ];
        expect(verifyLines(whole)).toMatchObject({
          verdict: "broken",
          break: { seq: k, verdict: "missing", expected: String(j) },
        });
        // The same, with the places written anew: now the leaves say that they stand elsewhere.
        const [one, other] = [log.entries[j - 1], log.entries[k - 1]];
        if (one === undefined || other === undefined) throw new Error("unreachable");
        const relabelled = lines.map((line, i) =>
          i === j0 ? leafLine({ ...other, seq: j }) : i === k0 ? leafLine({ ...one, seq: k }) : line,
        );
        expect(verifyLines(relabelled)).toMatchObject({
          verdict: "broken",
          break: { seq: j, verdict: "altered" },
        });
      }),
      LONG.runs,
    );
  });

  it("moved to another log of the same tenant is found at its place", () => {
    fc.assert(
      fc.property(logsAndPicks(SHORT.most), ([plan, a]) => {
        const { log } = grow(plan);
        const size = log.entries.length;
        const seq = 1 + pick(a, size);
        const other = new TestLog(log.tenant, "other").fill(size);
        const foreign = other.entries[seq - 1];
        if (foreign === undefined) throw new Error("unreachable");
        const lines = log.lines();
        const [first, after] = spans(lines).get(seq) ?? [0, 0];
        const moved = [
          ...lines.slice(0, first),
          leafLine(foreign),
          fieldsLine("content", foreign),
          ...lines.slice(after),
        ];
        const report = verifyLines(moved, { registryId: log.tenant.registryId });
        expect(report).toMatchObject({ verdict: "broken", break: { seq, verdict: "altered" } });
        expect(report.issues[0]?.code).toBe("log-id-mismatch");
      }),
      SHORT.runs,
    );
  });
});

describe("a head", () => {
  const withHead = (log: TestLog, checkpoint: string) => verifyLines(log.lines({ checkpoint }));

  it("of another size, another log, another tenant, or another history is found", () => {
    fc.assert(
      fc.property(logsAndPicks(SHORT.most), ([plan, a]) => {
        const { log } = grow(plan);
        const { tenant } = log;
        const size = log.entries.length;
        const smaller = pick(a, size);
        expect(withHead(log, log.checkpoint(undefined, smaller))).toMatchObject({
          verdict: "broken",
          break: { seq: smaller + 1, verdict: "fork" },
        });
        const longer = grow(plan).log.fill(1 + pick(a, 5));
        expect(withHead(log, longer.checkpoint())).toMatchObject({
          verdict: "broken",
          break: {
            seq: size + 1,
            verdict: "truncated",
            expected: String(longer.entries.length),
            found: String(size),
          },
        });
        const other = new TestLog(tenant, "other").fill(size);
        expect(withHead(log, other.checkpoint()).issues).toMatchObject([
          { seq: size, code: "log-id-mismatch" },
        ]);
        const stranger = new TestLog(new TestTenant("stranger")).fill(size);
        expect(withHead(log, stranger.checkpoint()).issues).toMatchObject([
          { seq: size, code: "log-id-mismatch" },
        ]);
        // The right key and origin over another history.
        expect(withHead(log, other.checkpoint(undefined, size, log.origin)).issues).toMatchObject([
          { seq: size, code: "root-mismatch" },
        ]);
        // The right origin and history, signed by a stranger.
        expect(withHead(log, log.checkpoint([stranger.tenant.audit])).issues).toMatchObject([
          { seq: size, code: "unregistered-key" },
        ]);
      }),
      SHORT.runs,
    );
  });
});
