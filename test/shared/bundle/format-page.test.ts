import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parseBundleLine } from "../../../shared/bundle/parse.ts";
import { fromHex } from "../../../shared/bytes.ts";
import { MAX_CBOR_DEPTH } from "../../../shared/cbor/decode.ts";
import { isLowOrder } from "../../../shared/crypto/ed25519-strict.ts";
import { REPORTERS } from "../../../shared/entry/leaf.ts";
import { MAX_FIELDS, MAX_LEAF_BYTES } from "../../../shared/entry/limits.ts";
import { OPS, ROLES } from "../../../shared/registry/record.ts";
import type { IssueCode } from "../../../shared/verify/issues.ts";
import { MAX_ISSUES, VERDICT_OF, verdictOf } from "../../../shared/verify/issues.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const page = readFileSync(join(root, "docs", "format.md"), "utf8");
/** The page without line breaks, so that a sentence is found wherever it wraps. */
const flowing = page.replace(/\s+/g, " ");

describe("docs/format.md", () => {
  it("lists every issue code with its kind of break, and no other", () => {
    const [, table = ""] = page.split("| code | kind of break | means |");
    const rows = [...table.matchAll(/^\| `([a-z-]+)` +\| ([a-z-]+) +\| /gm)].map(([, code, verdict]) => [
      code,
      verdict,
    ]);
    expect(Object.fromEntries(rows)).toEqual(VERDICT_OF);
    for (const [code, verdict] of rows) expect(verdictOf(code as IssueCode)).toBe(verdict);
  });

  it("names every kind of line that is read", () => {
    const named = [
      ...page.matchAll(/^\| `(registry|leaf|hash|content|disclosure|checkpoint|tenant|cosignature)` +\|/gm),
    ].map(([, t]) => t ?? "");
    expect(new Set(named).size).toBe(8);
    for (const t of named) {
      // A known kind without its members is malformed; an unknown one would be unsupported.
      expect(() => parseBundleLine(`{"t":"${t}"}`)).toThrow(
        expect.objectContaining({ code: "malformed-bundle" }),
      );
    }
    expect(() => parseBundleLine('{"t":"other"}')).toThrow(
      expect.objectContaining({ code: "unsupported-bundle" }),
    );
  });

  it("states the roles, the operations, the reporters and the limits of the code", () => {
    for (const [role, number] of Object.entries(ROLES))
      expect(flowing).toMatch(new RegExp(`\\b${number} ${role}\\b`));
    for (const [op, number] of Object.entries(OPS))
      expect(flowing).toMatch(new RegExp(`\\b${number} ${op}\\b`));
    for (const reporter of REPORTERS) expect(page).toContain(`\`${reporter}\``);
    expect(flowing).toContain(`at most ${MAX_LEAF_BYTES.toLocaleString("en")} bytes`);
    expect(flowing).toContain(`at most ${MAX_FIELDS} fields together`);
    expect(flowing).toContain(`nesting over ${MAX_CBOR_DEPTH} levels`);
    expect(flowing).toContain(`at most ${MAX_ISSUES.toLocaleString("en")} issues`);
  });

  it("lists the encodings of small order that the code refuses", () => {
    const block = /<!-- example: low-order -->\n\n```text\n([0-9a-f\n]+)\n```/.exec(page)?.[1] ?? "";
    const listed = block.split("\n");
    expect(listed.length).toBe(7);
    for (const hex of listed) {
      const point = fromHex(hex);
      expect(isLowOrder(point)).toBe(true);
      point[31] = (point[31] ?? 0) | 0x80;
      expect(isLowOrder(point)).toBe(true);
    }
  });
});
