import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { judgeJob } from "../../../shared/recheck/judge-job.ts";
import type { GateName } from "../../../shared/recheck/report.ts";
import { reportJson } from "../../../shared/recheck/report.ts";
import { formatStored, judgeStored, readStoredReport } from "../../../shared/recheck/stored-report.ts";
import type { RecheckSummary } from "../../../shared/recheck/summary.ts";
import { summaryJson } from "../../../shared/recheck/summary-json.ts";
import type { JobReport } from "../../../shared/recheck/summary-report.ts";
import { jobReportText, passesJobGate } from "../../../shared/recheck/summary-report.ts";
import { texts } from "./hostile-texts.ts";
import { runOf, someRuns, summaryOf } from "./summary-support.ts";
import type { XmlElement } from "./xml.ts";
import { parseXml } from "./xml.ts";

const DENIED = { tool: "wipe", result: "different", recorded: "allow", rechecked: "deny" } as const;
const ALLOWED = { tool: "send", result: "different", recorded: "deny", rechecked: "allow" } as const;
const LEFT = { tool: "gone", result: "not_recheckable" } as const;

function jobOf(summary: RecheckSummary, parts: Partial<JobReport> = {}): JobReport {
  return {
    id: "ab12",
    status: "complete",
    policy: { policy_id: "new/v2" },
    runs: { done: 3, total: 3 },
    without_runs: [],
    heads: [{ principal: "bot", size: 9, hash: "ab" }],
    summary: summaryJson(summary),
    ...parts,
  };
}

const mixed = (): RecheckSummary =>
  summaryOf([
    runOf("bot", "r1", [{}, {}, DENIED, ALLOWED, LEFT]),
    runOf("ant", "r2", [{}, DENIED], ["a note"]),
  ]);

const shownAs = (format: "text" | "junit" | "markdown", report: JobReport, gate: GateName | null = null) =>
  formatStored(format, { of: "job", report }, gate);
const junit = (report: JobReport, gate: GateName | null = null) => parseXml(shownAs("junit", report, gate));

const casesOf = (suite: XmlElement | undefined) =>
  (suite?.children ?? [])
    .filter(({ name }) => name === "testcase")
    .map(({ attributes, children }) => [attributes.classname, attributes.name, children[0]?.name]);
const suiteOf = (document: XmlElement, name: string) =>
  document.children.find(({ attributes }) => attributes.name === name);

describe("a job's report as junit", () => {
  it("has a suite for each principal, with what differs one by one and the rest in numbers", () => {
    const document = junit(jobOf(mixed()), "strict");
    expect(document.attributes).toEqual({
      name: "runseal rechecks",
      tests: "7",
      failures: "4",
      errors: "0",
      skipped: "1",
    });
    expect(casesOf(suiteOf(document, "bot"))).toEqual([
      ["bot/r1", "step 4 seq 4 send", "failure"],
      ["bot/r1", "step 3 seq 3 wipe", "failure"],
      ["bot", "2 the same", undefined],
      ["bot", "1 left out", "skipped"],
    ]);
    expect(casesOf(suiteOf(document, "ant"))).toEqual([
      ["ant/r2", "step 2 seq 2 wipe", "failure"],
      ["ant", "1 the same", undefined],
    ]);
    const [failure] = suiteOf(document, "bot")?.children[0]?.children ?? [];
    expect(failure?.attributes).toEqual({ type: "different", message: "deny -> allow: now allow" });
    const check = suiteOf(document, "check")?.children[0]?.children[0]?.attributes;
    expect(check).toEqual({
      type: "differs",
      message: "3 evaluation(s) differ; 1 evaluation(s) could not be re-checked",
    });
    const properties = suiteOf(document, "job ab12")?.children[0]?.children.map(({ attributes }) => [
      attributes.name,
      attributes.value,
    ]);
    expect(properties).toEqual([
      ["id", "ab12"],
      ["status", "complete"],
      ["policy_id", "new/v2"],
      ["identity", "unchanged"],
      ["spec_source", "recorded"],
      ["runs", "3 of 3"],
      ["logs", "1"],
      ["head", "bot 9:ab"],
      ["note", "a note"],
    ]);
  });

  it("fails nothing where nothing was expected", () => {
    const document = junit(jobOf(mixed(), { status: "cancelled", without_runs: ["eve"] }));
    expect(document.attributes).toMatchObject({ failures: "0", skipped: "2" });
    expect(suiteOf(document, "check")).toBeUndefined();
  });

  it("fails for a run that could not be read, and strictly for a principal without runs", () => {
    const summary = summaryOf([runOf("bot", "r1", [{}])]);
    summary.addFailure({ principal: "bot", run: "r9", code: "unreadable" });
    summary.addFailure({ principal: "ant", run: "", code: "log-stopped" });
    const report = jobOf(summary, { without_runs: ["eve"] });
    expect(casesOf(suiteOf(junit(report, "strict"), "job ab12")).sort()).toEqual([
      ["ant", "the log", "failure"],
      ["bot", "run r9", "failure"],
      ["eve", "runs", "failure"],
    ]);
    expect(junit(report, "proxy").attributes).toMatchObject({ failures: "3", skipped: "1" });
  });

  it("counts what the report lists no more", () => {
    const many = Array.from({ length: 500 }, () => DENIED);
    const document = junit(
      jobOf(summaryOf([runOf("bot", "r1", many), runOf("ant", "r2", [DENIED])])),
      "proxy",
    );
    const cases = [...casesOf(suiteOf(document, "bot")), ...casesOf(suiteOf(document, "ant"))];
    const listed = cases.filter(([, name]) => name?.startsWith("step ")).length;
    const counted = cases.map(([, name]) => Number(/^([0-9]+) more that differ$/.exec(name ?? "")?.[1] ?? 0));
    expect([listed, counted.reduce((sum, count) => sum + count, 0)]).toEqual([200, 301]);
  });

  it("sums up the principals that it does not list", () => {
    const runs = Array.from({ length: 60 }, (_, i) => runOf(`p${i}`, `r${i}`, [{}, DENIED, LEFT]));
    const document = junit(jobOf(summaryOf(runs)), "proxy");
    const others = casesOf(suiteOf(document, "other principals"));
    expect(others.filter(([, name]) => name?.startsWith("step ")).length).toBe(10);
    expect(others.slice(10)).toEqual([
      ["other principals", "10 the same", undefined],
      ["other principals", "10 left out", "skipped"],
    ]);
    expect(document.attributes).toMatchObject({ failures: "61" });
  });

  it("is red for a job that did not come to its end, whatever it found until then", () => {
    const good = summaryOf([runOf("bot", "r1", [{}])]);
    for (const status of ["cancelled", "budget-exhausted", "failed"]) {
      const document = junit(jobOf(good, { status }), "proxy");
      const check = suiteOf(document, "check")?.children[0]?.children[0]?.attributes;
      expect(check).toEqual({ type: "not-ended", message: "the job did not come to its end" });
    }
    expect(junit(jobOf(good), "proxy").attributes).toMatchObject({ failures: "0" });
  });

  it("accounts for every evaluation, and is red just where the gate is", () => {
    const statuses = fc.constantFrom("complete", "complete", "cancelled", "failed", "budget-exhausted");
    const gates = fc.constantFrom<GateName>("strict", "proxy");
    fc.assert(
      fc.property(
        someRuns,
        statuses,
        gates,
        fc.subarray(["x"]),
        fc.boolean(),
        (runs, status, gate, without, fails) => {
          const summary = summaryOf(runs);
          if (fails) summary.addFailure({ principal: "a", run: "r", code: "c" });
          const report = jobOf(summary, { status, without_runs: without });
          const { passed, failures } = judgeJob(gate, report);
          expect(passed).toBe(passesJobGate(gate, report));
          expect(failures.length === 0).toBe(passed);
          const document = junit(report, gate);
          expect(document.attributes.failures === "0").toBe(passed);
          let [same, different, left] = [0, 0, 0];
          for (const suite of document.children) {
            for (const [, name = ""] of casesOf(suite)) {
              if (name.startsWith("step ")) different += 1;
              different += Number(/^([0-9]+) more that/.exec(name)?.[1] ?? 0);
              same += Number(/^([0-9]+) the same$/.exec(name)?.[1] ?? 0);
              left += Number(/^([0-9]+) left out$/.exec(name)?.[1] ?? 0);
            }
          }
          const { totals } = report.summary;
          expect([same, different, left]).toEqual([
            totals.same,
            totals.different,
            totals.not_recheckable.total,
          ]);
        },
      ),
    );
  });
});

/** A job whose every text is this one. */
function hostile(text: string): JobReport {
  const made = { ...DENIED, tool: text, policyId: text };
  const run = runOf(text, text, [made, { ...ALLOWED, tool: text }], [text]);
  const report = {
    ...run.report,
    evaluations: run.report.evaluations.map((each) => ({ ...each, detail: text })),
  };
  const summary = summaryOf([{ ...run, report: report as unknown as typeof run.report }]);
  summary.addFailure({ principal: text, run: text === "" ? "r" : text, code: text });
  const job = jobOf(summary, {
    id: text,
    status: text,
    reason: text,
    policy: { policy_id: text, name: text, version: 1 },
    without_runs: [text],
    heads: [{ principal: text, size: 1, hash: text }],
  });
  return { ...job, summary: { ...job.summary, policy_id: text, identity: "changed" } };
}

describe("whatever the record and the policy say", () => {
  it("junit is well-formed", () => {
    fc.assert(
      fc.property(texts, (text) => {
        const lines = shownAs("junit", hostile(text), "strict").split("\n").length;
        expect(lines).toBe(shownAs("junit", hostile("plain"), "strict").split("\n").length);
        expect(junit(hostile(text), "strict").attributes.failures).toBe("5");
      }),
    );
  });

  it("markdown keeps its structure", () => {
    const skeleton = (text: string): string[] =>
      shownAs("markdown", hostile(text), "strict")
        .split("\n")
        .map((line) => `${line.slice(0, 2)} ${[...line].filter((character) => character === "|").length}`);
    fc.assert(
      fc.property(texts, (text) => {
        expect(skeleton(text)).toEqual(skeleton("plain"));
        const bare = shownAs("markdown", hostile(text), "strict").replaceAll(/<\/?code>|&#[0-9]+;/g, "");
        expect(bare).not.toMatch(/[`<[\]\\~_!&@]|:\/\/|www\./);
        expect(bare.replaceAll(/^###/gm, "")).not.toContain("#");
      }),
    );
  });
});

describe("a job's report as markdown", () => {
  it("has what is newly allowed first, then what differs, and the rest in numbers", () => {
    expect(
      shownAs("markdown", jobOf(mixed()), "proxy"),
    ).toBe(`### Recheck **failed**: 3 of 6 evaluations differ

- 3 evaluation(s) differ

Job <code>ab12</code>, complete: 3 of 3 runs of 1 logs; policy unchanged: <code>new&#47;v2</code>; recorded specs.

**Newly allowed:**

| recorded | principal | tool | calls | the first |
| --- | --- | --- | ---: | --- |
| <code>deny</code> | <code>bot</code> | <code>send</code> | 1 | <code>r1</code> seq 4 |

| recorded | now | same | different |
| --- | --- | ---: | ---: |
| <code>deny</code> | <code>allow</code> | 0 | 1 |
| <code>allow</code> | <code>allow</code> | 3 | 0 |
| <code>allow</code> | <code>deny</code> | 0 | 2 |

| principal | run | step | seq | tool | recorded | now | why |
| --- | --- | ---: | ---: | --- | --- | --- | --- |
| <code>bot</code> | <code>r1</code> | 4 | 4 | <code>send</code> | <code>deny</code> | <code>allow</code> | now allow |
| <code>ant</code> | <code>r2</code> | 2 | 2 | <code>wipe</code> | <code>allow</code> | <code>deny</code> | now deny |
| <code>bot</code> | <code>r1</code> | 3 | 3 | <code>wipe</code> | <code>allow</code> | <code>deny</code> | now deny |

7 evaluation(s) of 2 run(s): 3 same, 3 different, 1 could not be re-checked (spec-missing 1).

Note: a note (1 run(s)).

Head of <code>bot</code>: <code>9&#58;ab</code>.
`);
  });

  it("stays below what a comment may have, and says what it leaves out", () => {
    const long = (name: string, i: number) => `${name}-${i}-${"<".repeat(190)}`;
    const runs = Array.from({ length: 400 }, (_, i) =>
      runOf(`p${i}`, long("run", i), [{ ...ALLOWED, tool: long("tool", i) }], [long("note", i)]),
    );
    const text = shownAs(
      "markdown",
      jobOf(summaryOf(runs), { without_runs: runs.map(({ principal }) => principal) }),
    );
    expect(text.length).toBeLessThan(60_000);
    expect(text).toContain("**Newly allowed:**");
    expect(text).toMatch(/\n[0-9]+ more row\(s\) are not shown\.\n/);
    expect(text).toContain("200 more difference(s) are in the counts alone.");
    expect(text.endsWith("More is not shown.\n")).toBe(true);
  });
});

describe("a report that was stored", () => {
  it("is a job's in its forms, and text is the text of before", () => {
    const stored = readStoredReport(JSON.stringify(jobOf(mixed())));
    expect(stored.of).toBe("job");
    expect(formatStored("text", stored, "strict")).toBe(jobReportText(jobOf(mixed())));
    expect(judgeStored(stored, null)).toBeNull();
    expect(judgeStored(stored, "strict")?.passed).toBe(false);
  });

  it("is a run's, with its principal, its head, and whether it was verified", () => {
    const { report } = runOf("bot", "r1", [{}]);
    const added = '"principal":"bot","head":{"size":7,"root":"cd"},"verified":{"verdict":"broken"}';
    const stored = readStoredReport(`${reportJson(report).slice(0, -1)},${added}}`);
    expect(judgeStored(stored, "proxy")).toMatchObject({
      passed: false,
      failures: [{ code: "not-verified" }],
    });
    const document = parseXml(formatStored("junit", stored, "proxy"));
    expect(document.children[0]?.attributes.name).toBe("bot/r1");
    expect(document.attributes).toMatchObject({ tests: "2", failures: "1" });
    expect(formatStored("markdown", stored, null)).toContain("Head: size 7, root <code>cd</code>.");
  });

  it.each(["{}", "[1]", "null x"])("is refused where it is none: %s", (text) => {
    expect(() => readStoredReport(text)).toThrow();
  });
});
