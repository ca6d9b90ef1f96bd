import { describe, expect, it } from "vitest";
import type { Check } from "../../../shared/recheck/check.ts";
import { checkReports, isAtFault } from "../../../shared/recheck/check.ts";
import type { RecheckReport } from "../../../shared/recheck/report.ts";
import { answerOf, defaultPolicy, fixtureRun, LoopRun, policyOf, recheck, strictPolicy } from "./support.ts";

/** Steps 2 (twice) and 3 differ. */
const different = (): RecheckReport => recheck(fixtureRun(), strictPolicy());
const same = (): RecheckReport => recheck(fixtureRun(), defaultPolicy());
const nothing = (): RecheckReport => recheck(new LoopRun(defaultPolicy()), defaultPolicy());

/** The fixture's run, of which a spec is not stored any more. */
function incomplete(policy = defaultPolicy()): RecheckReport {
  const run = fixtureRun();
  const report = recheck(run, policy);
  const [first, ...rest] = report.evaluations;
  if (first === undefined) throw new Error("no evaluation");
  return Object.assign(Object.create(Object.getPrototypeOf(report)), report, {
    evaluations: [{ ...first, result: "not_recheckable", rechecked: null }, ...rest],
    rechecked: report.rechecked - 1,
    notRecheckable: 1,
  }) as RecheckReport;
}

/** The codes of the failures; empty where the check passes. */
function codes(check: Check, ...reports: RecheckReport[]): string[] {
  const result = checkReports(
    check,
    reports.map((report) => ({ report })),
  );
  expect(result.passed).toBe(result.failures.length === 0);
  return result.failures.map(({ code }) => code);
}

const CHECKS: readonly Check[] = [
  { gate: "proxy" },
  { gate: "strict" },
  { gate: "proxy", noNewAllow: true },
  { noNewAllow: true },
  { noNewAllow: true, partial: true },
  { differs: [2] },
  { differs: [2], partial: true },
];

describe("a check", () => {
  it("never passes by checking nothing: no run, no evaluation, none that could be re-checked", () => {
    for (const check of CHECKS) {
      expect(codes(check)).toContain("no-run");
      expect(codes(check, nothing())).toContain("nothing-rechecked");
      if (check.differs === undefined)
        expect(codes(check, nothing(), nothing())).toContain("nothing-rechecked");
    }
  });

  it("never passes over a log that is broken", () => {
    for (const check of CHECKS) {
      const report = check.differs === undefined ? same() : different();
      const failures = (intact: boolean | undefined) =>
        checkReports(check, [{ report, intact }]).failures.map(({ code }) => code);
      expect(failures(false)).toContain("not-verified");
      expect(failures(true)).toEqual(failures(undefined));
    }
  });

  it("is a gate that lets nothing differ", () => {
    for (const gate of ["proxy", "strict"] as const) {
      expect(codes({ gate }, same())).toEqual([]);
      expect(codes({ gate }, different())).toEqual(["differs"]);
      expect(codes({ gate }, same(), different())).toEqual(["differs"]);
    }
  });

  it("is strict where nothing may be left out", () => {
    expect(codes({ gate: "strict" }, incomplete())).toEqual(["incomplete"]);
    expect(codes({ gate: "proxy" }, incomplete())).toEqual([]);
    expect(codes({ gate: "proxy", partial: true }, incomplete())).toEqual([]);
  });

  it("names exactly the steps that differ", () => {
    expect(codes({ differs: [2, 3] }, different())).toEqual([]);
    expect(codes({ differs: [3, 2] }, different())).toEqual([]);
    expect(codes({ differs: [2] }, different())).toEqual(["other-steps"]);
    expect(codes({ differs: [2, 3, 4] }, different())).toEqual(["other-steps"]);
    expect(codes({ differs: [1] }, different())).toEqual(["other-steps", "other-steps"]);
    expect(codes({ differs: [2] }, same())).toEqual(["other-steps"]);
    expect(codes({ differs: [2, 3] }, incomplete(strictPolicy()))).toEqual(["incomplete"]);
    expect(codes({ differs: [2, 3], partial: true }, incomplete(strictPolicy()))).toEqual([]);
  });

  it.each([
    ["deny", "allow", true],
    ["abort", "allow", true],
    ["require_approval", "allow", true],
    ["allow", "allow", false],
    ["allow", "deny", false],
    ["deny", "require_approval", false],
    ["deny", "abort", false],
  ] as const)("lets nothing be newly allowed: %s -> %s", (before, after, isNew) => {
    const run = new LoopRun(policyOf(() => answerOf(before)));
    run.call({ tool: "read", args: '{"n":1}' });
    const report = recheck(
      run,
      policyOf(() => answerOf(after)),
    );
    expect(codes({ noNewAllow: true }, report)).toEqual(isNew ? ["new-allow"] : []);
    if (before !== after)
      expect(codes({ differs: [0], noNewAllow: true }, report)).toEqual(isNew ? ["new-allow"] : []);
  });

  it("lets what may be newly allowed not be left out", () => {
    expect(codes({ noNewAllow: true }, incomplete())).toEqual(["incomplete"]);
    expect(codes({ noNewAllow: true, partial: true }, incomplete())).toEqual([]);
  });

  it("says which differences are at fault", () => {
    const report = different();
    const faults = (check: Check): number[] =>
      report.evaluations.filter((each) => isAtFault(check, each)).map(({ seq }) => seq);
    expect(faults({ gate: "proxy" })).toEqual([14, 18, 23]);
    expect(faults({ differs: [2] })).toEqual([23]);
    expect(faults({ differs: [2, 3] })).toEqual([]);
    expect(faults({ noNewAllow: true })).toEqual([]);
  });

  it.each<[string, Check]>([
    ["expects nothing", {}],
    ["is partial and nothing else", { partial: true }],
    ["expects no step to differ", { differs: [] }],
    ["names a step twice", { differs: [2, 2] }],
    ["names no step", { differs: [-1] }],
    ["names half a step", { differs: [0.5] }],
    ["lets nothing differ and something", { gate: "proxy", differs: [2] }],
    ["leaves out nothing and something", { gate: "strict", partial: true }],
  ])("is refused where it %s", (_, check) => {
    expect(() => checkReports(check, [{ report: same() }])).toThrowError(
      expect.objectContaining({ code: "recheck-check" }),
    );
  });

  it("of steps is of one run", () => {
    expect(() => checkReports({ differs: [2] }, [{ report: same() }, { report: same() }])).toThrowError(
      expect.objectContaining({ code: "recheck-check" }),
    );
  });
});
