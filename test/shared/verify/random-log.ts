/**
 * Logs at random: how many entries, in what batches, where the audit key is rotated, what each entry holds.
 *
 * @module
 */
import fc from "fast-check";
import { nativeCrypto } from "../../../native/crypto.ts";
import type { VerifyReport } from "../../../shared/api/schemas.ts";
import { LineSplitter } from "../../../shared/bundle/lines.ts";
import { utf8 } from "../../../shared/bytes.ts";
import type { BundleOptions } from "../../../shared/verify/bundle.ts";
import { BundleVerifier } from "../../../shared/verify/bundle.ts";
import type { EntryPlan } from "./test-tenant.ts";
import { bytesOf, T0, TestLog, TestTenant } from "./test-tenant.ts";

/** Sizes of the batches that a log grew by, and whether the audit key was rotated before each. */
export interface LogPlan {
  readonly batches: readonly { readonly size: number; readonly rotate: boolean }[];
  readonly kinds: number;
}

export interface GrownLog {
  readonly log: TestLog;
  /** The head that was signed after each batch. */
  readonly heads: readonly {
    readonly size: number;
    readonly checkpoint: string;
    readonly hash: Uint8Array;
  }[];
}

/** Logs of up to `most` entries. */
export function logPlans(most: number): fc.Arbitrary<LogPlan> {
  const batch = fc.record({
    size: fc.oneof(
      fc.constant(1),
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: Math.ceil(most / 2) }),
    ),
    rotate: fc.boolean(),
  });
  return fc
    .record({ batches: fc.array(batch, { minLength: 1, maxLength: 6 }), kinds: fc.nat(1000) })
    .filter(({ batches }) => batches.reduce((sum, { size }) => sum + size, 0) <= most);
}

/** Short logs of every shape: with and without a client's key, rotations, and values of each kind. */
export const SMALL_PLANS: readonly LogPlan[] = [[1], [1, 1], [2, 3], [4, 1, 2]].flatMap((sizes, i) =>
  [0, 1, 2].map((k) => ({
    kinds: 2 * k + i,
    batches: sizes.map((size, j) => ({ size, rotate: j % 2 === 1 })),
  })),
);

const SHAPES: readonly EntryPlan[] = [
  {},
  { values: {} },
  {
    values: { action: { goal: '"caf\u00e9 \u65e5\u672c \u{1F600} \\u003c"', note: "null" } },
    session: "s-1",
    step: "st-1",
  },
  { values: { action: { a: "1" }, outcome: { result: '{"a":[1.0,1e0]}' } }, outcome: "success", call: "c-1" },
  {
    values: { action: { a: "1" }, authorization: { reason: '"r"' } },
    authorization: "not_required",
    occurredAt: T0,
    actor: { type: "agent", id: "bot", codeHash: bytesOf("code", 32) },
  },
];

/** Grows the log of a plan; the same plan gives the same log. */
export function grow({ batches, kinds }: LogPlan): GrownLog {
  const tenant = new TestTenant(`random-${kinds}`);
  const client = kinds % 2 === 0 ? tenant.addKey() : undefined;
  const log = new TestLog(tenant);
  const heads: { size: number; checkpoint: string; hash: Uint8Array }[] = [];
  for (const { size, rotate } of batches) {
    if (rotate) tenant.rotate();
    for (let i = 0; i < size; i++) {
      const n = log.entries.length + kinds;
      const shape = SHAPES[n % SHAPES.length] ?? {};
      log.append(client !== undefined && n % 7 === 0 ? { ...shape, client } : shape);
    }
    heads.push({
      size: log.entries.length,
      checkpoint: log.checkpoint(),
      hash: log.entries.at(-1)?.hash ?? log.logId,
    });
  }
  return { log, heads };
}

type Given = Omit<BundleOptions, "verifiedBy">;

/** The report on these lines. */
export function verifyLines(lines: Iterable<string>, given: Given = {}): VerifyReport {
  const verifier = new BundleVerifier(nativeCrypto, { ...given, verifiedBy: "test" });
  for (const line of lines) verifier.line(line);
  return verifier.finish();
}

/** The report on a file's bytes, which arrive in chunks of that size. */
export function verifyBytes(bytes: Uint8Array, given: Given = {}, chunk = 65_536): VerifyReport {
  const verifier = new BundleVerifier(nativeCrypto, { ...given, verifiedBy: "test" });
  const splitter = new LineSplitter();
  for (let at = 0; at < bytes.length; at += chunk) {
    for (const line of splitter.push(bytes.subarray(at, at + chunk))) verifier.line(line);
  }
  verifier.line(splitter.end());
  return verifier.finish();
}

/** A bundle's file. */
export function fileOf(lines: readonly string[]): Uint8Array {
  return utf8(`${lines.join("\n")}\n`);
}

/** A report without what is long, to compare. */
export function brief(report: VerifyReport): unknown {
  const { verdict, break: found, issues } = report;
  return {
    verdict,
    seq: found?.seq,
    kind: found?.verdict,
    codes: issues.map(({ seq, code }) => `${code} at ${seq}`),
  };
}

/** Where the lines of each entry are: [first, after the last]. */
export function spans(lines: readonly string[]): Map<number, readonly [number, number]> {
  const out = new Map<number, readonly [number, number]>();
  lines.forEach((line, i) => {
    const { seq } = JSON.parse(line) as { seq?: number };
    if (seq !== undefined) out.set(seq, [out.get(seq)?.[0] ?? i, i + 1]);
  });
  return out;
}
