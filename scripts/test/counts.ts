/**
 * What a test run amounts to, from vitest's JSON report. Whatever went wrong shows as a failure: a file that could not
 * be loaded, an error outside a test, a run without any test.
 *
 * @module
 */

export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** The part of vitest's JSON report that is read here. */
export interface VitestReport {
  readonly testResults: readonly {
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string }[];
  }[];
}

/**
 * @param report undefined where vitest wrote none
 * @param exitCode vitest's
 */
export function countReport(report: VitestReport | undefined, exitCode: number): TestCounts {
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  for (const file of report?.testResults ?? []) {
    const states = file.assertionResults.map(({ status }) => status);
    const failedTests = states.filter((status) => status === "failed").length;
    passed += states.filter((status) => status === "passed").length;
    skipped += states.filter((status) => status !== "passed" && status !== "failed").length;
    // A file that fails as a whole (an import, a beforeAll) may have no failed test of its own.
    failed += file.status === "failed" ? Math.max(failedTests, 1) : failedTests;
  }
  const unexplained = exitCode !== 0 && failed === 0;
  const empty = passed + failed === 0;
  return { passed, failed: failed + Number(unexplained || empty), skipped };
}

export function addCounts(a: TestCounts, b: TestCounts): TestCounts {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped };
}

/** The one line that ends a run. */
export function formatCounts({ passed, failed, skipped }: TestCounts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}
