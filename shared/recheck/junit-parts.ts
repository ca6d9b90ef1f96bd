/**
 * The parts of which JUnit XML is made: cases, suites of them, the document.
 *
 * @module
 */
import type { Judged } from "./check.ts";
import { shown } from "./text.ts";

/** Text for an attribute or an element. What XML 1.0 can't hold is gone already: `shown` escapes it. */
function xml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&apos;")
    .replaceAll(/[\ufffe\uffff]/g, "\ufffd");
}

/** What became of a case. `noted` passes, and says something. */
export type Outcome =
  | { readonly verdict: "passed" }
  | { readonly verdict: "noted" | "skipped"; readonly words: string }
  | { readonly verdict: "failure"; readonly type: string; readonly words: string };

export interface Case {
  readonly verdict: Outcome["verdict"];
  readonly lines: readonly string[];
}

interface Counts {
  readonly tests: number;
  readonly failures: number;
  readonly skipped: number;
}

export interface Suite {
  readonly lines: readonly string[];
  readonly counts: Counts;
}

/** A case; every text is one that `shown` made safe, or the code's own. */
export function caseOf(className: string, name: string, outcome: Outcome): Case {
  const open = `    <testcase classname="${xml(className)}" name="${xml(name)}"`;
  return { verdict: outcome.verdict, lines: [...linesOf(open, outcome)] };
}

function linesOf(open: string, outcome: Outcome): readonly string[] {
  switch (outcome.verdict) {
    case "passed":
      return [`${open}/>`];
    case "noted":
      return [`${open}>`, `      <system-out>${xml(outcome.words)}</system-out>`, "    </testcase>"];
    case "skipped":
      return [`${open}>`, `      <skipped message="${xml(outcome.words)}"/>`, "    </testcase>"];
    case "failure":
      return [
        `${open}>`,
        `      <failure type="${outcome.type}" message="${xml(outcome.words)}"/>`,
        "    </testcase>",
      ];
  }
}

/** A suite of cases, with its properties where it has some. */
export function suiteOf(
  name: string,
  cases: readonly Case[],
  properties: readonly (readonly [name: string, value: string])[] = [],
): Suite {
  const count = (verdict: Case["verdict"]) => cases.filter((each) => each.verdict === verdict).length;
  const counts = { tests: cases.length, failures: count("failure"), skipped: count("skipped") };
  const listed = properties.map(([key, value]) => `      <property name="${key}" value="${xml(value)}"/>`);
  return {
    counts,
    lines: [
      `  <testsuite name="${xml(name)}" ${attributes(counts)}>`,
      ...(listed.length === 0 ? [] : ["    <properties>", ...listed, "    </properties>"]),
      ...cases.flatMap(({ lines }) => lines),
      "  </testsuite>",
    ],
  };
}

/** The check as a case of its own: it fails also where no evaluation is at fault, as where there was none. */
export function checkSuites(result: Judged | null): Suite[] {
  if (result === null) return [];
  const words = shown(result.failures.map(({ message }) => message).join("; "));
  const outcome: Outcome = result.passed
    ? { verdict: "passed" }
    : { verdict: "failure", type: result.failures[0]?.code ?? "", words };
  return [suiteOf("check", [caseOf("recheck", "check", outcome)])];
}

function attributes({ tests, failures, skipped }: Counts): string {
  return `tests="${tests}" failures="${failures}" errors="0" skipped="${skipped}"`;
}

/** The whole document. */
export function xmlDocument(name: string, suites: readonly Suite[]): string {
  const total = (key: keyof Counts) => suites.reduce((sum, { counts }) => sum + counts[key], 0);
  const counts = { tests: total("tests"), failures: total("failures"), skipped: total("skipped") };
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="${name}" ${attributes(counts)}>`,
    ...suites.flatMap(({ lines }) => lines),
    "</testsuites>",
    "",
  ].join("\n");
}
