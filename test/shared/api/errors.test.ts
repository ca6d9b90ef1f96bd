import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { renderErrorsMarkdown } from "../../../shared/api/errors-markdown.ts";
import { isProblemCode, PROBLEMS, problemType } from "../../../shared/api/problems.ts";

describe("problems", () => {
  it("docs/errors.md lists them all, as they are (npm run docs writes it)", () => {
    const page = readFileSync(new URL("../../../docs/errors.md", import.meta.url).pathname, "utf8");
    expect(page).toBe(renderErrorsMarkdown());
  });

  it("every code has an error status, and no transient one is a 500", () => {
    for (const [code, { status, help }] of Object.entries(PROBLEMS)) {
      expect(isProblemCode(code)).toBe(true);
      expect(status).toBeGreaterThanOrEqual(400);
      expect(help.length).toBeGreaterThan(0);
      if (/unavailable|full|overloaded|rebuilding|failed$/.test(code) && code !== "gate-failed")
        expect(status).toBe(503);
    }
    expect(problemType("conflict")).toBe("urn:runseal:problem:conflict");
    expect(isProblemCode("toString")).toBe(false);
  });
});
