import { createHash } from "node:crypto";
import { encode } from "cborg";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import type { EntryView } from "../../../shared/entry/view.ts";
import { checkRunAgainst, checkRunAlone } from "../../../shared/host/check-run.ts";
import type { HostCall } from "../../../shared/host/run-fold.ts";
import { CALL_OUTCOMES, callsText, HostCallFold } from "../../../shared/host/run-fold.ts";
import { formatTime } from "../../../shared/time.ts";
import { TestLog } from "../audit/support.ts";

const STATUS = { ok: "success", failed: "failure", denied: "denied" } as const;
const START = 1_790_845_200_000_000_001n;

const callOf = fc.record({
  class: fc.constantFrom("file.read", "file.delete"),
  path: fc.string({ maxLength: 12, unit: "grapheme" }),
  outcome: fc.constantFrom(...CALL_OUTCOMES),
  detail: fc.option(fc.string({ maxLength: 8, unit: "grapheme" })),
  gap: fc.bigInt({ min: 0n, max: 5_000_000_000n }),
});

type Drawn = typeof callOf extends fc.Arbitrary<infer T> ? T : never;

function callsFrom(drawn: readonly Drawn[]): HostCall[] {
  let at = START;
  return drawn.map((one) => {
    at += one.gap;
    const fields = new Map([["path", JSON.stringify(one.path)]]);
    return { class: one.class, fields, outcome: one.outcome, detail: one.detail, at };
  });
}

function folded(calls: readonly HostCall[]): string {
  const fold = new HostCallFold(nativeCrypto);
  for (const call of calls) fold.add(call);
  return callsText(fold.summary());
}

/** The calls, each written as an entry of its own, and the run over them, as the ingest stores them. */
function logOf(calls: readonly HostCall[], text = folded(calls)): { run: EntryView; written: EntryView[] } {
  const log = new TestLog();
  const written = calls.map(({ class: kind, fields, outcome, detail, at }) =>
    log.add(kind, {
      occurred_at: formatTime(at),
      action: Object.fromEntries([...fields].map(([name, value]) => [name, JSON.parse(value) as unknown])),
      outcome: { status: STATUS[outcome], ...(detail === null ? {} : { error: detail }) },
    }),
  );
  return { run: log.add("host.run", { action: { calls: JSON.parse(text) as unknown } }), written };
}

const CALLS = callsFrom([
  { class: "file.read", path: "/a", outcome: "ok", detail: null, gap: 0n },
  { class: "file.read", path: "/b", outcome: "ok", detail: null, gap: 5n },
  { class: "file.delete", path: "/c", outcome: "denied", detail: "no", gap: 7n },
  { class: "file.read", path: "/d", outcome: "ok", detail: null, gap: 1n },
]);

describe("the fold of a run of calls", () => {
  it("is what another implementation of docs/host-calls.md computes", () => {
    const sha = (value: unknown) => createHash("sha256").update(encode(value)).digest();
    let fold = Buffer.alloc(32);
    for (const { class: name, fields, outcome, detail, at } of CALLS) {
      const digest = sha(["runseal.host-call.v1", name, Object.fromEntries(fields), outcome, detail, at]);
      fold = sha(["runseal.host-call-fold.v1", fold, digest]) as Buffer<ArrayBuffer>;
    }
    expect(JSON.parse(folded(CALLS))).toEqual({
      count: 4,
      first_at: "2026-10-01T09:00:00.000000001Z",
      last_at: "2026-10-01T09:00:00.000000014Z",
      fold: fold.toString("hex"),
      tally: [
        { class: "file.read", outcome: "ok", count: 3, first: { path: "/a" } },
        { class: "file.delete", outcome: "denied", count: 1, first: { path: "/c" }, first_detail: "no" },
      ],
    });
  });

  it("is the same in the browser's crypto, and for fields in another order or spelling", () => {
    const respelled = CALLS.map((call) => ({
      ...call,
      fields: new Map([
        ["n", "1"],
        ["path", '"\\u002fa"'],
      ]),
    }));
    const plain = CALLS.map((call) => ({
      ...call,
      fields: new Map([
        ["path", '"/a"'],
        ["n", " 1"],
      ]),
    }));
    expect(folded(respelled)).toBe(folded(plain));
    const pure = new HostCallFold(pureCrypto);
    for (const call of CALLS) pure.add(call);
    expect(callsText(pure.summary())).toBe(folded(CALLS));
  });

  it("of no calls is refused", () => {
    expect(() => new HostCallFold(nativeCrypto).summary()).toThrow("at least one call");
  });
});

describe("a run, computed again from the calls on record", () => {
  it("matches, whatever they are", () => {
    fc.assert(
      fc.property(fc.array(callOf, { minLength: 1, maxLength: 12 }), (drawn) => {
        const { run, written } = logOf(callsFrom(drawn));
        expect(checkRunAlone(run)).toEqual({ verdict: "matches" });
        expect(checkRunAgainst(nativeCrypto, run, written)).toEqual({ verdict: "matches" });
      }),
      { numRuns: 60 },
    );
  });

  it("differs where a call is missing, added, turned round with another, or altered", () => {
    const { run, written } = logOf(CALLS);
    const [a, b, c, d] = written as [EntryView, EntryView, EntryView, EntryView];
    const members = (calls: EntryView[]) => {
      const check = checkRunAgainst(nativeCrypto, run, calls);
      return check.verdict === "differs" ? check.mismatches.map(({ member }) => member) : check.verdict;
    };
    expect(members([a, b, c])).toEqual(["count", "last_at", "fold", "tally"]);
    expect(members([a, c, d])).toEqual(["count", "fold", "tally"]);
    expect(members([a, b, b, c, d])).toEqual(["count", "fold", "tally"]);
    expect(members([b, a, c, d])).toEqual(["first_at", "fold", "tally"]);
    expect(members([a, d, c, b])).toEqual(["last_at", "fold"]);
    const altered = { ...b, action: new Map([["path", { text: '"/x"' }]]) };
    expect(members([a, altered, c, d])).toEqual(["fold"]);
    const later = { ...b, occurred_at: (b.occurred_at ?? 0n) + 1n };
    expect(members([a, later, c, d])).toEqual(["fold"]);
    const failed = { ...b, outcome: { status: "failure", fields: new Map() } };
    expect(members([a, failed, c, d])).toEqual(["fold", "tally"]);
    const excused = { ...c, outcome: { status: "denied", fields: new Map() } };
    expect(members([a, b, excused, d])).toEqual(["fold", "tally"]);
  });

  it("differs where a member was altered in the run's entry", () => {
    const calls = JSON.parse(folded(CALLS)) as Record<string, unknown>;
    for (const [member, value] of [
      ["count", 5],
      ["first_at", "2026-10-01T09:00:00.000000002Z"],
      ["last_at", "2026-10-01T09:00:00Z"],
      ["fold", "ab".repeat(32)],
      ["tally", []],
    ] as const) {
      const { run, written } = logOf(CALLS, JSON.stringify({ ...calls, [member]: value }));
      const check = checkRunAgainst(nativeCrypto, run, written);
      expect(check).toMatchObject({ verdict: "differs", mismatches: [{ member }] });
    }
  });

  it("matches a time that is written another way", () => {
    const calls = JSON.parse(folded(CALLS)) as Record<string, unknown>;
    const { run, written } = logOf(
      CALLS,
      JSON.stringify({ ...calls, first_at: "2026-10-01T11:00:00.000000001+02:00" }),
    );
    expect(checkRunAgainst(nativeCrypto, run, written)).toEqual({ verdict: "matches" });
  });

  it("can't be checked where something is withheld, is no call, or is not there", () => {
    const { run, written } = logOf(CALLS);
    const [a, ...rest] = written as [EntryView, ...EntryView[]];
    const withheld = { ...a, action: new Map([["path", { missing: "withheld" as const }]]) };
    const check = (entry: EntryView, calls: EntryView[]) => checkRunAgainst(nativeCrypto, entry, calls);
    expect(check(run, [withheld, ...rest])).toEqual({ verdict: "not-checkable", why: "withheld", seq: 1 });
    expect(check(run, [{ ...a, outcome: null }])).toMatchObject({ why: "not-a-call" });
    expect(check(run, [])).toMatchObject({ why: "no-calls" });
    const erased = { ...run, action: new Map([["calls", { missing: "erased" as const }]]) };
    expect(check(erased, written)).toEqual({ verdict: "not-checkable", why: "erased", seq: 5 });
    expect(checkRunAlone(erased)).toMatchObject({ why: "erased" });
  });
});

describe("a run by itself", () => {
  const alone = (change: Record<string, unknown>) => {
    const calls = { ...(JSON.parse(folded(CALLS)) as object), ...change };
    // As a log may hold it that took what our ingest refuses.
    const action = new Map([["calls", { text: JSON.stringify(calls) }]]);
    const check = checkRunAlone({ ...logOf(CALLS).run, action });
    return check.verdict === "differs" ? check.mismatches.map(({ member }) => member) : check.verdict;
  };

  it("contradicts itself where its last call was before the first, and not where both were at once", () => {
    const [at, before] = ["2026-10-01T09:00:00.000000002Z", "2026-10-01T10:00:00.000000001+01:00"];
    expect(alone({ first_at: at, last_at: before })).toEqual(["last_at"]);
    expect(alone({ first_at: at, last_at: at })).toBe("matches");
  });

  it("contradicts itself where its tally does not add up, or a part is not there", () => {
    const line = { class: "file.read", outcome: "ok", count: 2 };
    expect(alone({})).toBe("matches");
    expect(alone({ count: 5 })).toEqual(["tally"]);
    expect(alone({ count: 0, tally: [] })).toEqual(["count"]);
    expect(alone({ tally: [line, line] })).toEqual(["tally"]);
    const all = { ...line, count: 4 };
    for (const other of [
      { ...line, class: "net.bind", count: 0 },
      { class: "net.bind", outcome: "ok" },
    ])
      expect(alone({ tally: [all, other] })).toEqual(["tally"]);
    for (const nothing of [
      { ...all, outcome: "maybe" },
      { ...all, class: null },
    ])
      expect(alone({ tally: [nothing] })).toEqual(["tally"]);
    expect(alone({ tally: [all, "no line"] })).toEqual(["tally"]);
    expect(alone({ tally: undefined })).toEqual(["tally"]);
    expect(alone({ fold: null, first_at: undefined, last_at: null })).toEqual([
      "fold",
      "first_at",
      "last_at",
    ]);
  });
});
