import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Check } from "../../../shared/recheck/check.ts";
import { formatReports, type ShownReport, shownReports } from "../../../shared/recheck/format-report.ts";
import type { RecheckReport } from "../../../shared/recheck/report.ts";
import { reportJson } from "../../../shared/recheck/report.ts";
import { readReport } from "../../../shared/recheck/report-read.ts";
import { reportText } from "../../../shared/recheck/text.ts";
import { texts } from "./hostile-texts.ts";
import { answerOf, defaultPolicy, fixtureRun, LoopRun, policyOf, recheck, strictPolicy } from "./support.ts";
import { parseXml } from "./xml.ts";

const different = (): RecheckReport => recheck(fixtureRun(), strictPolicy());
const same = (): RecheckReport => recheck(fixtureRun(), defaultPolicy());
const nothing = (): RecheckReport => recheck(new LoopRun(defaultPolicy()), defaultPolicy());

const shownAs = (
  format: "text" | "junit" | "markdown",
  reports: readonly (ShownReport | RecheckReport)[],
  check: Check | null = null,
): string =>
  formatReports(
    format,
    shownReports(
      reports.map((each) => ("report" in each ? each : { report: each })),
      check,
    ),
  );

/** A run whose tool, reason and id are these texts, and differ under the policy. */
function hostile(text: string): RecheckReport {
  const run = new LoopRun(policyOf(() => answerOf("deny")));
  run.call({ tool: "read", args: '{"n":1}' });
  const policy = policyOf(() => answerOf("allow", { reason: text }));
  const report = recheck(run, policy);
  const evaluations = report.evaluations.map((each) => ({ ...each, tool: text, detail: text }));
  const changed = { evaluations, notes: [text], runId: text, runStatus: text, policyId: text };
  return Object.assign(Object.create(Object.getPrototypeOf(report)), report, changed) as RecheckReport;
}

describe("text", () => {
  it("is the pinned text, and nothing more where nothing is asked", () => {
    expect(shownAs("text", [different()])).toBe(reportText(different()));
    expect(shownAs("text", [same()], { gate: "strict" })).toBe(reportText(same()));
    expect(shownAs("text", [same(), different()])).toBe(reportText(same()) + reportText(different()));
  });

  it("says whether the log was verified, and leaves the verdict to whoever asked", () => {
    expect(shownAs("text", [{ report: same(), intact: true }])).toContain("\nverified: ");
    expect(shownAs("text", [{ report: same(), intact: false }])).toMatch(/\nNOT VERIFIED: [^\n]*\n$/);
    expect(shownAs("text", [different()], { gate: "strict" })).toBe(reportText(different()));
    expect(shownAs("text", [], { gate: "proxy" })).toBe("");
  });
});

describe("junit", () => {
  it("has a suite for each run, a case for each evaluation, and one for the check", () => {
    const document = parseXml(
      shownAs(
        "junit",
        [{ report: different(), principal: "bot", head: { size: 9, root: "ab" }, intact: true }],
        {
          gate: "strict",
        },
      ),
    );
    expect(document).toMatchObject({
      name: "testsuites",
      attributes: { tests: "6", failures: "4", errors: "0", skipped: "0" },
    });
    const [suite, check] = document.children;
    expect(suite?.attributes).toMatchObject({ name: "bot/id-01", tests: "5", failures: "3" });
    const cases = suite?.children.filter(({ name }) => name === "testcase") ?? [];
    expect(cases.map(({ attributes, children }) => [attributes.name, children[0]?.name])).toEqual([
      ["step 0 seq 5 read", undefined],
      ["step 1 seq 10 wipe", undefined],
      ["step 2 seq 14 publish", "failure"],
      ["step 2 seq 18 publish (on resume)", "failure"],
      ["step 3 seq 23 write", "failure"],
    ]);
    expect(cases[4]?.children[0]?.attributes.message).toBe(
      "allow -> deny: side effect local_mutation is deny by policy",
    );
    const properties = suite?.children[0]?.children.map(({ attributes }) => attributes.name);
    expect(properties).toEqual(["run_status", "policy_id", "identity", "spec_source", "head", "verified"]);
    expect(check?.children[0]?.children[0]?.attributes).toMatchObject({ type: "differs" });
  });

  it("is red where nothing was re-checked, and without a check nothing is", () => {
    for (const reports of [[], [nothing()]])
      expect(parseXml(shownAs("junit", reports, { gate: "proxy" })).attributes).toMatchObject({
        tests: "1",
        failures: "1",
      });
    expect(parseXml(shownAs("junit", [different()])).attributes).toMatchObject({ tests: "5", failures: "0" });
  });

  it("takes expected differences for what they are", () => {
    const document = parseXml(shownAs("junit", [different()], { differs: [2, 3] }));
    expect(document.attributes).toMatchObject({ tests: "6", failures: "0" });
    expect(document.children[0]?.children.at(-1)?.children[0]?.name).toBe("system-out");
  });

  it("skips what could not be re-checked", () => {
    const report = different();
    const evaluations = report.evaluations.map((each) => ({
      ...each,
      result: "not_recheckable" as const,
      detail: "not re-checkable: why",
    }));
    const left = Object.assign(Object.create(Object.getPrototypeOf(report)), report, { evaluations });
    const document = parseXml(shownAs("junit", [left as RecheckReport]));
    expect(document.attributes).toMatchObject({ tests: "5", skipped: "5" });
    expect(document.children[0]?.children[1]?.children[0]).toMatchObject({
      name: "skipped",
      attributes: { message: "not re-checkable: why" },
    });
  });

  it("is well-formed whatever the record and the policy say", () => {
    fc.assert(
      fc.property(texts, (text) => {
        const xml = shownAs("junit", [hostile(text)], { gate: "proxy" });
        const document = parseXml(xml);
        expect(document.attributes).toMatchObject({ tests: "2", failures: "2" });
        expect(xml.split("\n").length).toBe(
          shownAs("junit", [hostile("plain")], { gate: "proxy" }).split("\n").length,
        );
      }),
    );
  });
});

describe("markdown", () => {
  it("is a table of what differs, and the rest in numbers", () => {
    const head = { size: 24, root: "ab".repeat(32) };
    expect(
      shownAs("markdown", [{ report: different(), principal: "bot", head, intact: true }], { gate: "proxy" }),
    ).toBe(`### Recheck **failed**: 3 of 5 evaluations differ

- 3 evaluation(s) differ

Run <code>bot</code> <code>id-01</code>, COMPLETED: 3 of 5 differ; policy changed: recorded "default&#47;v1", given "strict&#47;v1"; recorded specs.

| step | seq | tool | recorded | now | why |
| ---: | ---: | --- | --- | --- | --- |
| 2 | 14 | <code>publish</code> | <code>require&#95;approval</code> | <code>deny</code> | side effect remote&#95;mutation is deny by policy |
| 2 | 18 | <code>publish</code> (on resume) | <code>require&#95;approval</code> | <code>deny</code> | side effect remote&#95;mutation is deny by policy |
| 3 | 23 | <code>write</code> | <code>allow</code> | <code>deny</code> | side effect local&#95;mutation is deny by policy |

5 evaluation(s): 2 same, 3 different, 0 could not be re-checked.

Head: size 24, root <code>${head.root}</code>.

Verified: what was re-checked is what was logged.
`);
  });

  it("says that it passed, and has no table where nothing differs", () => {
    const text = shownAs("markdown", [same()], { gate: "strict" });
    expect(text).toMatch(/^### Recheck passed: 0 of 5 evaluations differ\n/);
    expect(text).not.toContain("| step |");
    expect(shownAs("markdown", [], { gate: "proxy" })).toContain("- no run was re-checked");
  });

  it("keeps every text of the record and the policy in its place", () => {
    const skeleton = (text: string): string[] =>
      shownAs("markdown", [hostile(text)], { gate: "proxy" })
        .split("\n")
        .map((line) => `${line.slice(0, 2)} ${[...line].filter((character) => character === "|").length}`);
    fc.assert(
      fc.property(texts, (text) => {
        const markdown = shownAs("markdown", [hostile(text)], { gate: "proxy" });
        expect(skeleton(text)).toEqual(skeleton("plain"));
        const bare = markdown.replaceAll(/<\/?code>|&#[0-9]+;/g, "");
        // What is left of a text has no character that could be structure, a link, or a mention.
        expect(bare).not.toMatch(/[`<[\]\\~_!&@]|:\/\/|www\./);
        expect(bare.replaceAll(/^###/gm, "")).not.toContain("#");
      }),
    );
  });

  it("stays below what a comment may have, with what is newly allowed in it", () => {
    const run = new LoopRun(policyOf(() => answerOf("deny", { reason: "r".repeat(200) })));
    for (let n = 0; n < 2000; n++) run.call({ tool: "read", args: `{"n":${n}}` });
    let asked = 0;
    const policy = policyOf(() =>
      answerOf(++asked === 2000 ? "allow" : "abort", { reason: "w".repeat(230) }),
    );
    const text = shownAs("markdown", [recheck(run, policy)], { noNewAllow: true });
    expect(text.length).toBeLessThan(65_536);
    expect(text.length).toBeGreaterThan(50_000);
    expect(text).toContain("**<code>allow</code>**");
    expect(text).toMatch(/\n[0-9]+ more row\(s\) are not shown\.\n/);
    const many = shownAs("markdown", Array.from({ length: 500 }, different));
    expect(many.length).toBeLessThan(65_536);
    expect(many).toMatch(/[0-9]+ more run\(s\) are not shown\./);
  });
});

describe("a report that was read from its JSON", () => {
  it("gives every form again, and its JSON", () => {
    for (const report of [same(), different(), nothing()]) {
      const read = readReport(reportJson(report));
      expect(reportJson(read)).toBe(reportJson(report));
      for (const format of ["text", "junit", "markdown"] as const)
        expect(shownAs(format, [read])).toBe(shownAs(format, [report]));
      expect([read.identity, read.rechecked, read.same]).toEqual([
        report.identity,
        report.rechecked,
        report.same,
      ]);
    }
  });

  it("passes over what a service adds", () => {
    const text = `${reportJson(same()).slice(0, -1)},"head":{"size":1},"gate":{"name":"proxy","passed":true}}`;
    expect(reportJson(readReport(text))).toBe(reportJson(same()));
  });

  it.each(["[]", "{}", '{"run_id":1}', reportJson(same()).replace('"same"', '"equal"')])(
    "is refused: %s",
    (text) => {
      expect(() => readReport(text)).toThrowError(expect.objectContaining({ code: "recheck-report" }));
    },
  );
});
