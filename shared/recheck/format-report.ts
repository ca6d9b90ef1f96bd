/**
 * The forms in which reports of re-checks are shown: `text` (docs/recheck.md, "Text"), `junit` for test reporters,
 * `markdown` for a comment. Each takes one report or many. JSON is `reportJson`.
 *
 * @module
 */
import { type Check, type CheckedReport, type CheckResult, checkReports } from "./check.ts";
import { junitText } from "./format-junit.ts";
import { markdownText } from "./format-markdown.ts";
import { reportText } from "./text.ts";

export const RECHECK_FORMATS = ["json", "text", "junit", "markdown"] as const;
export type RecheckFormat = (typeof RECHECK_FORMATS)[number];

/** By form. */
export const FORMAT_TYPES: Readonly<Record<RecheckFormat, string>> = {
  json: "application/json",
  text: "text/plain; charset=utf-8",
  junit: "application/xml; charset=utf-8",
  markdown: "text/markdown; charset=utf-8",
};

/** A report, and what is known of where it was read from. */
export interface ShownReport extends CheckedReport {
  /** Whose log the run is in. */
  readonly principal?: string | undefined;
  /** A signed head that covers what was read. */
  readonly head?: { readonly size: number; readonly root: string } | undefined;
}

/** What is shown, and whether it is what was expected. */
export interface Shown {
  readonly reports: readonly ShownReport[];
  /** Null where nothing was expected: then nothing fails. */
  readonly check: Check | null;
  readonly result: CheckResult | null;
}

/** Puts reports and what is expected of them together. Throws what `checkReports` does. */
export function shownReports(reports: readonly ShownReport[], check: Check | null): Shown {
  return { reports, check, result: check === null ? null : checkReports(check, reports) };
}

/** The reports in a form for people or other programs. */
export function formatReports(format: Exclude<RecheckFormat, "json">, given: Shown): string {
  switch (format) {
    case "text":
      return textForm(given);
    case "junit":
      return junitText(given);
    case "markdown":
      return markdownText(given);
  }
}

/** The pinned text of each report, to the letter, and after it whether the range was verified, where that was asked. */
function textForm({ reports }: Shown): string {
  const texts = reports.map(({ report, intact }) => {
    const verified =
      intact === undefined
        ? ""
        : intact
          ? "verified: what was re-checked is what was logged\n"
          : "NOT VERIFIED: what was re-checked is not what was logged\n";
    return reportText(report) + verified;
  });
  return texts.join("");
}
