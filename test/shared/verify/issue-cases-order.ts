/**
 * Bundles whose entries, lines or heads are out of order, missing, or of another log.
 *
 * @module
 */
import { toHex } from "../../../shared/bytes.ts";
import { at, type Case, entry, good, head, log, replaced, stranger, tenant } from "./issue-cases.ts";
import { fieldsLine, hashLine, leafLine, TestLog } from "./test-tenant.ts";

export const ORDER_CASES: readonly Case[] = [
  {
    name: "an entry is missing",
    lines: good.filter((_, i) => i !== at("leaf", 2) && i !== at("content", 2)),
    code: "sequence-gap",
    seq: 4,
  },
  {
    name: "the first entry is missing",
    lines: good.filter((_, i) => i !== at("leaf") && i !== at("content")),
    code: "sequence-gap",
    seq: 2,
  },
  {
    name: "a place that nobody can walk to",
    lines: replaced(
      at("leaf", 4),
      (good[at("leaf", 4)] ?? "").replace('"seq":5', `"seq":${Number.MAX_SAFE_INTEGER}`),
    ).filter((_, i) => i !== at("content", 4)),
    code: "sequence-gap",
    seq: Number.MAX_SAFE_INTEGER,
  },
  {
    name: "an entry comes twice",
    lines: replaced(at("leaf", 2), leafLine(entry(3)), leafLine(entry(3))),
    code: "duplicate-entry",
    seq: 3,
  },
  {
    name: "an entry comes again later",
    lines: replaced(at("leaf", 4), leafLine(entry(2)), leafLine(entry(5))),
    code: "duplicate-entry",
    seq: 2,
  },
  {
    name: "another entry of the same place",
    lines: replaced(at("leaf", 2), leafLine(entry(3)), leafLine({ ...entry(4), seq: 3 })),
    code: "forked-entry",
    seq: 3,
  },
  {
    name: "more entries than the head has",
    lines: head(log.checkpoint(undefined, 3)),
    code: "forked-entry",
    seq: 4,
  },
  {
    name: "fewer entries than the head has",
    lines: good.filter((_, i) => i !== at("leaf", 4) && i !== at("content", 4)),
    code: "truncated",
    seq: 5,
  },
  { name: "no head", lines: good.slice(0, -1), code: "truncated", seq: 6 },
  {
    name: "cut in the middle of a line",
    lines: [...good.slice(0, at("leaf", 2)), (good[at("leaf", 2)] ?? "").slice(0, 99)],
    code: "truncated",
    seq: 3,
  },
  {
    name: "a range that goes past the head",
    lines: replaced(0, (good[0] ?? "").replace('"to":5', '"to":6')),
    code: "truncated",
    seq: 5,
  },
  {
    name: "a range that is none",
    lines: replaced(0, (good[0] ?? "").replace('"from":1', '"from":7')),
    code: "malformed-entry",
    seq: 0,
  },
  {
    name: "a leaf outside of the range",
    lines: replaced(0, (good[0] ?? "").replace('"to":5', '"to":4')),
    code: "malformed-entry",
    seq: 5,
  },
  {
    name: "another root",
    lines: replaced(at("leaf", 2), hashLine({ seq: 3, hash: entry(1).hash })).filter(
      (_, i) => i < at("content", 2) || i > at("content", 4),
    ),
    code: "truncated",
    seq: 4,
  },
  {
    name: "a hash that is not the withheld leaf's",
    lines: log.lines({ withhold: [5] }).map((line) => line.replace(toHex(entry(5).hash), "ab".repeat(32))),
    code: "root-mismatch",
    seq: 5,
  },
  {
    name: "a head whose signature is altered",
    lines: head(
      log.checkpoint().replace(/(.{20})(.)(.{5})\n$/, (_, a, b, c) => `${a}${b === "A" ? "B" : "A"}${c}\n`),
    ),
    code: "invalid-signature",
    seq: 5,
  },
  { name: "a head of a stranger", lines: head(log.checkpoint([stranger])), code: "unregistered-key", seq: 5 },
  {
    name: "a head of the log key",
    lines: head(log.checkpoint([tenant.log])),
    code: "unregistered-key",
    seq: 5,
  },
  { name: "a head that is no note", lines: head("not a note"), code: "malformed-entry", seq: 5 },
  {
    name: "a head of another log",
    lines: head(new TestLog(tenant, "other").fill(5).checkpoint()),
    code: "log-id-mismatch",
    seq: 5,
  },
  {
    name: "a kept head that was not reached",
    lines: good,
    given: { keptHead: { seq: 6, hash: "ab".repeat(32) } },
    code: "truncated",
    seq: 6,
  },
  {
    name: "a kept head of another history",
    lines: good,
    given: { keptHead: { seq: 3, hash: "ab".repeat(32) } },
    code: "kept-head-mismatch",
    seq: 3,
  },
  {
    name: "a kept checkpoint of another history",
    lines: good,
    given: { checkpoint: new TestLog(tenant, "other").fill(3).checkpoint(undefined, 3, log.origin) },
    code: "kept-head-mismatch",
    seq: 3,
  },
  {
    name: "a kept checkpoint of a longer log",
    lines: good,
    given: { checkpoint: new TestLog(tenant).fill(9).checkpoint() },
    code: "truncated",
    seq: 9,
  },
  { name: "a line that is no line", lines: replaced(at("leaf", 2), "{}"), code: "malformed-entry", seq: 3 },
  {
    name: "a line of a later version",
    lines: replaced(at("leaf", 2), '{"t":"novelty"}'),
    code: "unsupported-entry",
    seq: 3,
  },
  {
    name: "a bundle of a later version",
    lines: ['{"runseal":"bundle.v2"}', ...good.slice(1)],
    code: "unsupported-entry",
    seq: 0,
  },
  { name: "no bundle at all", lines: [], code: "malformed-entry", seq: 0 },
  {
    name: "a registry record after the entries",
    lines: [...good.slice(0, -1), good[1] ?? "", ...good.slice(-1)],
    code: "malformed-entry",
    seq: 6,
  },
  { name: "entries after the head", lines: [...good, leafLine(entry(5))], code: "malformed-entry", seq: 6 },
  { name: "two heads", lines: [...good, ...good.slice(-1)], code: "malformed-entry", seq: 6 },
  {
    name: "values before any leaf",
    lines: replaced(1, good[1] ?? "", fieldsLine("content", entry(1))),
    code: "malformed-entry",
    seq: 1,
  },
  {
    name: "values of another entry",
    lines: replaced(at("content", 2), fieldsLine("content", entry(2))),
    code: "malformed-entry",
    seq: 4,
  },
  {
    name: "values beside a withheld leaf",
    lines: log
      .lines({ withhold: [3] })
      .flatMap((line) => (line === hashLine(entry(3)) ? [line, fieldsLine("content", entry(3))] : [line])),
    code: "malformed-entry",
    seq: 4,
  },
  {
    name: "values twice",
    lines: replaced(at("content", 2), fieldsLine("content", entry(3)), fieldsLine("content", entry(3))),
    code: "malformed-entry",
    seq: 4,
  },
  {
    name: "a field opened twice",
    lines: replaced(at("content", 2), fieldsLine("content", entry(3)), fieldsLine("disclosure", entry(3))),
    code: "malformed-entry",
    seq: 4,
  },
  {
    name: "content after a disclosure",
    lines: replaced(
      at("content", 2),
      fieldsLine("disclosure", { seq: 3, openings: [] }),
      fieldsLine("content", entry(3)),
    ),
    code: "malformed-entry",
    seq: 4,
  },
];
