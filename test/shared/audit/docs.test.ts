import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { FINDING_KINDS } from "../../../shared/audit/finding.ts";
import { CONTEXT_KINDS } from "../../../shared/audit/findings.ts";
import { auditJson } from "../../../shared/audit/report.ts";
import { refusedAudit } from "../../../shared/audit/run-audit.ts";

const page = readFileSync(fileURLToPath(new URL("../../../docs/audit.md", import.meta.url).href), "utf8");
/** Lines without the spaces that line up the columns of a table. */
const lines = new Set(page.split("\n").map((line) => line.replace(/ +/g, " ")));

describe("docs/audit.md", () => {
  it("has every kind of finding as it is reported", () => {
    for (const [kind, { severity, message, entries }] of Object.entries(FINDING_KINDS))
      expect(lines).toContain(`| \`${kind}\` | ${severity} | ${message} | ${entries} |`);
  });

  it("has every kind of the context", () => {
    for (const kind of CONTEXT_KINDS) expect(page).toContain(`\`${kind}\``);
  });

  it("has every key of a report", () => {
    for (const key of Object.keys(JSON.parse(auditJson(refusedAudit("x")))))
      expect(page).toMatch(new RegExp(`^\\|[^|]*\`${key}\``, "m"));
  });
});
