import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AuditReport } from "../../../shared/audit/report.ts";
import { RunAudit } from "../../../shared/audit/run-audit.ts";
import type { EntryView } from "../../../shared/entry/view.ts";
import { type Parts, TestLog } from "./support.ts";

const H = "cd".repeat(32);

/** An entry of a well-formed run; `pair` marks a half without which the other is wrong. */
interface Planned {
  readonly kind: string;
  readonly parts: Parts;
  readonly pair?: true;
}

/** A small thing that a run does, its entries in order. `n` tells it from the others. */
type Deed = (n: number) => Planned[];

const tool = "publish";
const call = (n: number, authorization?: Parts["authorization"]): Planned[] => [
  {
    kind: "tool.call.started",
    pair: true,
    parts: {
      step: `s${n}`,
      call: `c${n}`,
      action: { tool, args: { n } },
      ...(authorization === undefined ? {} : { authorization }),
    },
  },
  {
    kind: "tool.call.completed",
    pair: true,
    parts: {
      step: `s${n}`,
      call: `c${n}`,
      action: { tool },
      outcome: { status: "success", result: { ok: true } },
    },
  },
];
const evaluation = (n: number, outcome: string): Planned => ({
  kind: "policy.evaluated",
  parts: { step: `s${n}`, action: { tool, args: { n }, decision: { outcome } } },
});
const request = (n: number, pair: boolean): Planned => ({
  kind: "approval.requested",
  ...(pair ? { pair } : {}),
  parts: {
    step: `s${n}`,
    action: {
      approval_id: `a${n}`,
      kind: "remote_mutation",
      capability: { tool, args: { n } },
      presentation: {},
      hash: H,
    },
  },
});
const decision = (n: number, kind: string, pair: boolean): Planned => ({
  kind,
  ...(pair ? { pair } : {}),
  parts: { step: `s${n}`, action: { approval_id: `a${n}` } },
});

const DEEDS: readonly Deed[] = [
  (n) => [evaluation(n, "allow"), ...call(n)],
  (n) => [evaluation(n, "deny")],
  (n) => [
    evaluation(n, "require_approval"),
    request(n, true),
    decision(n, "approval.granted", true),
    ...call(n, { type: "user_approval", user_id: "u", approval_id: `a${n}` }),
  ],
  (n) => [evaluation(n, "require_approval"), request(n, true), decision(n, "approval.denied", false)],
  (n) => [
    {
      kind: "capability.created",
      pair: true,
      parts: {
        run: null,
        action: { token_id: `t${n}`, resource: "x", permissions: ["read"], scope: "once" },
      },
    },
    {
      kind: "file.read",
      parts: { action: { path: "/x" }, authorization: { type: "capability", token_id: `t${n}` } },
    },
    { kind: "capability.revoked", parts: { run: null, action: { token_id: `t${n}` } } },
  ],
  (n) => [
    {
      kind: "code.installed",
      pair: true,
      parts: { run: null, action: { code_id: `k${n}`, code_hash: H } },
    },
    { kind: "code.loaded", parts: { action: { code_id: `k${n}`, code_hash: H } } },
  ],
];

const exchange = (sequence: number): Planned[] => [
  {
    kind: "http.request",
    pair: true,
    parts: {
      action: {
        sequence,
        method: "GET",
        host: "h",
        port: 443,
        path_hash: H,
        headers_hash: H,
        body_hash: H,
        body_len: 0,
        redirect_hop: 0,
      },
    },
  },
  {
    kind: "http.response",
    pair: true,
    parts: { action: { sequence }, outcome: { status: "success", body_len: 0, complete: true } },
  },
];

/** Merges the deeds' entries; each deed's own stay in order. `picks` says from which the next entry is taken. */
function merged(deeds: readonly Planned[][], picks: readonly number[]): Planned[] {
  const rest = deeds.filter((deed) => deed.length > 0).map((deed) => [...deed]);
  const out: Planned[] = [];
  for (let at = 0; rest.length > 0; at += 1) {
    const place = (picks[at % Math.max(picks.length, 1)] ?? 0) % rest.length;
    const next = rest[place]?.shift();
    if (next !== undefined) out.push(next);
    if (rest[place]?.length === 0) rest.splice(place, 1);
  }
  return out;
}

const runs = fc
  .record({
    deeds: fc.array(fc.nat(DEEDS.length - 1), { maxLength: 8 }),
    exchanges: fc.nat(4),
    picks: fc.array(fc.nat(20), { minLength: 1, maxLength: 12 }),
  })
  .map(({ deeds, exchanges, picks }) =>
    merged(
      [
        ...deeds.map((deed, n) => DEEDS[deed]?.(n) ?? []),
        ...Array.from({ length: exchanges }, (_, n) => exchange(n + 1)),
      ],
      picks,
    ),
  );

const SNAPSHOT = {
  resources: { tools: [{ tool_name: tool, description: "d", parameters: {}, source: "builtin" }] },
};

/** The run with its frame: it is created with what it may use, completes, and its host says so. */
function entriesOf(plan: readonly Planned[]): { entries: EntryView[]; halves: EntryView[] } {
  const log = new TestLog();
  log.add("run.created", { action: { authorization: SNAPSHOT } });
  const planned = plan.map((one) => ({ one, entry: log.add(one.kind, one.parts) }));
  log.add("run.completed", { action: { finish_reason: "stop" } });
  log.add("run.status", { action: { status: "completed" } });
  return {
    entries: log.entries,
    halves: planned.filter(({ one }) => one.pair === true).map(({ entry }) => entry),
  };
}

function audited(entries: readonly EntryView[]): AuditReport {
  const audit = new RunAudit("r1", { mode: "strict" }, { context: "log" });
  for (const entry of entries) audit.add(entry);
  return audit.finish();
}

describe("the audit of a well-formed run", () => {
  it("passes and finds nothing, whatever the order in which its deeds overlap", () => {
    fc.assert(
      fc.property(runs, (plan) => {
        const report = audited(entriesOf(plan).entries);
        expect(report.findings).toEqual([]);
        expect(report.failures).toEqual([]);
        expect(report.not_checked).toEqual([]);
        expect(report.status).toBe("pass");
      }),
      { numRuns: 150 },
    );
  });

  it("finds every half of a pair that is dropped, and names entries of the log", () => {
    fc.assert(
      fc.property(runs, fc.nat(), (plan, pick) => {
        const { entries, halves } = entriesOf(plan);
        fc.pre(halves.length > 0);
        const dropped = halves[pick % halves.length];
        const rest = entries.filter((entry) => entry !== dropped);
        const report = audited(rest);
        expect(report.findings.length + report.failures.length).toBeGreaterThan(0);
        const hashes = new Map(rest.map(({ seq, hash }) => [seq, hash]));
        for (const finding of report.findings) {
          expect(finding.entries.length).toBeGreaterThan(0);
          for (const { seq, hash } of finding.entries) expect(hashes.get(seq)).toBe(hash);
        }
      }),
      { numRuns: 300 },
    );
  });
});
