import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { fromHex, toBase64, toHex } from "../../../shared/bytes.ts";
import { encodeCbor } from "../../../shared/cbor/encode.ts";
import { leafHash } from "../../../shared/merkle/hash.ts";
import { IssueList, MAX_ISSUES, VERDICT_OF } from "../../../shared/verify/issues.ts";
import { at, ENTRY_CASES, entry, good, head, leafOf, log, replaced, tenant } from "./issue-cases.ts";
import { ORDER_CASES } from "./issue-cases-order.ts";

const CASES = [...ENTRY_CASES, ...ORDER_CASES];

import { brief, verifyLines } from "./random-log.ts";
import { secondVerify } from "./second-verifier.ts";
import { leafLine, TestLog, TestTenant } from "./test-tenant.ts";

describe("each thing that can be wrong is found, at its place", () => {
  it.each(CASES.map((one) => [one.name, one] as const))("%s", (_, { lines, given = {}, code, seq }) => {
    const report = verifyLines(lines, given);
    expect(report.verdict).toBe(code === "unsupported-entry" ? "unsupported" : "broken");
    expect([report.break?.seq, report.break?.verdict]).toEqual([seq, VERDICT_OF[code]]);
    expect(report.issues).toContainEqual({ seq, code, detail: report.break?.detail });
    const second = secondVerify(lines, given);
    expect(report.issues.map((one) => ({ seq: one.seq, code: one.code }))).toEqual(second.issues);
    expect(report.verdict).toBe(second.verdict);
  });

  it("a client's signature over another statement", () => {
    const own = new TestTenant("client");
    const client = own.addKey();
    const its = new TestLog(own).fill(2);
    its.append({ client, forge: (leaf) => ({ ...leaf, run: "another-run" }) });
    const report = verifyLines(its.lines());
    expect(brief(report)).toEqual({
      verdict: "broken",
      seq: 3,
      kind: "bad-signature",
      codes: ["invalid-signature at 3"],
    });
    // A client's key counts from the epoch that adds it to the one that retires it.
    const late = new TestLog(own, "late");
    late.append({ client });
    own.retireKey(client);
    late.append({ client });
    expect(brief(verifyLines(late.lines()))).toMatchObject({ codes: ["unregistered-key at 2"] });
  });

  it("the epoch that goes back, with the key of its time", () => {
    const own = new TestTenant("epochs");
    const its = new TestLog(own).fill(1);
    const old = own.rotate();
    its.fill(1).append({ forge: (leaf) => ({ ...leaf, epoch: 0, key: old.publicKey }) });
    expect(brief(verifyLines(its.lines()))).toMatchObject({ seq: 3, codes: ["epoch-regression at 3"] });
  });

  it("every code but the one that only the service's database can give", () => {
    const provoked = new Set<string>([
      "invalid-signature",
      "epoch-regression",
      ...CASES.map(({ code }) => code),
    ]);
    for (const { lines, given = {} } of CASES)
      for (const { code } of verifyLines(lines, given).issues) provoked.add(code);
    expect([...provoked].sort()).toEqual(
      Object.keys(VERDICT_OF)
        .filter((code) => code !== "altered-index")
        .sort(),
    );
  });
});

describe("what can't be read", () => {
  it("does not hide what is broken: the break is the first issue that is one", () => {
    const later = leafOf(2, encodeCbor(["runseal.entry.v2", 1]));
    const report = verifyLines(replaced(at("leaf", 1), later).filter((_, i) => i !== at("content", 1)));
    expect(report.issues[0]).toMatchObject({ seq: 2, code: "unsupported-entry" });
    expect(report).toMatchObject({ verdict: "broken", break: { seq: 3, verdict: "altered" } });
  });

  it("is not called broken where all else holds", () => {
    const own = new TestTenant("later");
    const its = new TestLog(own).fill(1);
    const bytes = encodeCbor(["runseal.entry.v2", its.logId, 2]);
    const later = { ...its.append(), bytes, hash: leafHash(nativeCrypto, bytes), openings: [] };
    its.entries[1] = later;
    its.append();
    const report = verifyLines(its.lines());
    expect(brief(report)).toMatchObject({
      verdict: "unsupported",
      seq: 2,
      codes: ["unsupported-entry at 2"],
    });
  });

  it("names the line, and says that nothing after it was checked", () => {
    const report = verifyLines(replaced(at("leaf", 2), "{}"));
    expect(report.break?.detail).toMatch(new RegExp(`^line ${at("leaf", 2) + 1}: `));
    expect(report).toMatchObject({
      pinned: false,
      trusted: [],
      not_checked: ["everything after the line that can't be read"],
    });
    expect(report.checked).toBe(2);
  });

  it("is passed over where it is only blank", () => {
    expect(brief(verifyLines(good.flatMap((line) => ["", line, " \t\r"])))).toEqual({
      verdict: "intact",
      codes: [],
    });
  });
});

describe("issues", () => {
  it("are at most 1,024 in a report, the first break first", () => {
    const lines = good.flatMap((line, i) =>
      i === at("leaf", 1) ? Array.from({ length: 2000 }, () => leafLine(entry(1))) : [line],
    );
    const report = verifyLines(lines);
    expect(report.issues.length).toBe(MAX_ISSUES);
    expect(report.break).toMatchObject({ seq: 1, verdict: "duplicate" });
    const [first] = report.issues;
    expect(report.break?.detail).toBe(first?.detail);
    const list = new IssueList();
    for (let i = 0; i < 3000; i++)
      list.add({ seq: i, code: "unsupported-entry", detail: "", expected: null, found: null });
    list.add({ seq: 7, code: "broken-link", detail: "late", expected: null, found: null });
    expect([list.total, list.all.length, list.verdict, list.first?.seq]).toEqual([
      3001,
      MAX_ISSUES,
      "broken",
      7,
    ]);
  });

  it("say what was expected and what was found, where both are known", () => {
    const report = verifyLines(replaced(at("leaf", 2), leafLine({ ...entry(3), hash: entry(2).hash })));
    expect(report.break).toMatchObject({ expected: toHex(entry(2).hash), found: toHex(entry(3).hash) });
    const root = verifyLines(head(new TestLog(tenant, "other").fill(5).checkpoint(undefined, 5, log.origin)));
    expect(root.break?.found).toBe(toHex(log.edge.root()));
    expect(toBase64(fromHex(root.break?.expected ?? ""))).toHaveLength(44);
  });
});
