import { describe, expect, it } from "vitest";
import { addCounts, countReport, formatCounts } from "../../scripts/test/counts.ts";

function file(status: string, ...states: string[]) {
  return { status, assertionResults: states.map((state) => ({ status: state })) };
}

describe("the counts of a test run", () => {
  it("are of tests, not of files", () => {
    const report = {
      testResults: [file("passed", "passed", "passed", "skipped"), file("passed", "passed", "todo")],
    };
    expect(countReport(report, 0)).toEqual({ passed: 3, failed: 0, skipped: 2 });
    const failing = { testResults: [file("failed", "passed", "failed", "failed")] };
    expect(countReport(failing, 1)).toEqual({ passed: 1, failed: 2, skipped: 0 });
  });

  it("have a failure for a file that could not be loaded", () => {
    expect(countReport({ testResults: [file("passed", "passed"), file("failed")] }, 1)).toMatchObject({
      failed: 1,
    });
    expect(countReport({ testResults: [file("failed", "passed")] }, 1)).toMatchObject({
      passed: 1,
      failed: 1,
    });
  });

  it("have a failure where vitest fails without a failed test", () => {
    expect(countReport({ testResults: [file("passed", "passed")] }, 1)).toMatchObject({
      passed: 1,
      failed: 1,
    });
    expect(countReport(undefined, 1)).toMatchObject({ passed: 0, failed: 1 });
  });

  it("have a failure where no test ran", () => {
    expect(countReport({ testResults: [] }, 0)).toMatchObject({ failed: 1 });
    expect(countReport({ testResults: [file("passed", "skipped")] }, 0)).toMatchObject({
      failed: 1,
      skipped: 1,
    });
    expect(countReport(undefined, 0)).toMatchObject({ failed: 1 });
  });

  it("add up, and make one line", () => {
    const sum = addCounts({ passed: 1, failed: 0, skipped: 0 }, { passed: 40, failed: 2, skipped: 0 });
    expect(formatCounts(sum)).toBe("41 passed, 2 failed");
    expect(formatCounts({ ...sum, skipped: 3 })).toBe("41 passed, 2 failed, 3 skipped");
  });
});
