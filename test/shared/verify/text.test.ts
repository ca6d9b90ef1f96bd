import { describe, expect, it } from "vitest";
import { toHex } from "../../../shared/bytes.ts";
import { verifyText } from "../../../shared/verify/text.ts";
import { verifyLines } from "./random-log.ts";
import { TestLog, TestTenant } from "./test-tenant.ts";

const tenant = new TestTenant("text");
const log = new TestLog(tenant).fill(3);
const hash = (seq: number) => toHex(log.entries[seq - 1]?.hash ?? new Uint8Array());
const claim =
  "trusted: the submitters: a log proves what was sent, by which credential and in which order, not that it is true";
const fresh =
  "not checked: freshness: nothing that was checked says that there is no later head, or no later registry record";

describe("a report's text", () => {
  it("says that the log is intact, what was trusted, and what was not checked", () => {
    expect(verifyText(verifyLines(log.lines(), { registryId: tenant.registryId })).split("\n")).toEqual([
      "head: 3 entries, signed",
      "intact: 3 entries, 1 to 3",
      `last checked: 3:${hash(3)}`,
      "trusted: the pinned registry id",
      claim,
      fresh,
    ]);
  });

  it("never says intact of a bundle that nothing was pinned for", () => {
    const text = verifyText(verifyLines(log.lines()));
    expect(text).toContain("consistent, not pinned: 3 entries, 1 to 3");
    expect(text).not.toContain("intact");
    expect(text).toContain("trusted: the registry inside the bundle: nothing was pinned");
  });

  it("says of an empty log that there is nothing in it", () => {
    const text = verifyText(
      verifyLines(new TestLog(tenant, "empty").lines(), { registryId: tenant.registryId }),
    );
    expect(text).toContain("head: no entries\nintact: no entries in the range");
  });

  it("names the first break, with what was expected and found, and how many issues follow", () => {
    const lines = log.lines().filter((line) => !line.includes('"seq":2'));
    const [, broken, expected, found] = verifyText(verifyLines(lines)).split("\n");
    expect(broken).toBe("broken at entry 3: missing: seq 3 follows 1: entry 2 is missing");
    expect([expected, found]).toEqual(["  expected 2", "  found    3"]);
    const more = verifyText(
      verifyLines([...log.lines().slice(0, 2), ...log.lines().slice(4)], { registryId: "ab".repeat(32) }),
    );
    expect(more).toContain("broken at entry 0: malformed: the registry is not the pinned one");
    expect(more).toContain("  1 further issues (--json lists them)");
  });

  it("says of a kept head that it matches, does not match, or was not reached by a walk", () => {
    const keptHead = { seq: 2, hash: hash(2) };
    const text = (lines: string[], kept = keptHead) => verifyText(verifyLines(lines, { keptHead: kept }));
    expect(text(log.lines())).toContain("kept head: 2 matches");
    expect(text(log.lines(), { seq: 2, hash: hash(1) })).toContain("kept head: 2 does not match");
    expect(text(log.lines({ withhold: [1] }))).toContain(
      "kept head: 2 was not reached by a walk over every leaf",
    );
    expect(text(log.lines({ withhold: [1] }))).not.toContain("matches");
  });

  it("says of a later version that it can't be read", () => {
    const text = verifyText(verifyLines([...log.lines(), '{"t":"novelty"}']));
    expect(text).toMatch(
      /^unsupported at entry 4: malformed: line \d+: it is of a kind that is not known here$/m,
    );
  });
});
