import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { passesGate, reportJson } from "../../../shared/recheck/report.ts";
import { rulesPolicy } from "../../../shared/recheck/rules.ts";
import { reportText } from "../../../shared/recheck/text.ts";
import { type Call, LoopRun, recheck, TOOLS } from "./support.ts";

const outcome = fc.constantFrom("allow", "require_approval", "deny", "abort");
const sideEffect = fc.constantFrom("read_only", "local_mutation", "remote_mutation", "destructive");
const toolName = fc.constantFrom(...TOOLS.keys(), "unknown");

const json = fc.json({ maxDepth: 3 }).filter((text) => !/1e\d{3}|-?\d{300}/.test(text));
const number = fc.constantFrom("1", "1.0", "1e0", "-0", "9007199254740993", "12345678901234567890", "0.1");
const args = fc.oneof(
  number.map((literal) => `{"n":${literal}}`),
  json.map((text) => `{"v":${text}}`),
);
const call: fc.Arbitrary<Call> = fc.record({
  tool: toolName,
  args,
  approval: fc.constantFrom(
    "granted" as const,
    "granted" as const,
    "denied" as const,
    "expired" as const,
    "waiting" as const,
  ),
});

const rule = fc.record(
  {
    side_effect: sideEffect,
    outcome,
    deny: fc.oneof(fc.boolean(), fc.subarray(["n", "v", "x"])),
    fixed: fc.dictionary(fc.constantFrom("a", "b"), fc.integer()),
  },
  { requiredKeys: [] },
);
const policy = fc.record({
  side_effects: fc.dictionary(sideEffect, outcome),
  tools: fc.dictionary(toolName, rule),
});

const run = fc.record({ calls: fc.array(call, { maxLength: 8 }), steps: fc.boolean(), policy });

function record({
  calls,
  steps,
  policy: rules,
}: typeof run extends fc.Arbitrary<infer T> ? T : never): LoopRun {
  const loop = new LoopRun(rulesPolicy(JSON.stringify(rules)), { steps });
  for (const each of calls) loop.call(each);
  return loop.complete();
}

describe("any run", () => {
  it("is all the same under the policy that it was recorded with", () => {
    fc.assert(
      fc.property(run, (parts) => {
        const recorded = record(parts);
        const report = recheck(recorded, rulesPolicy(JSON.stringify(parts.policy)));
        expect(report.evaluations.map(({ result, detail }) => [result, detail])).toEqual(
          recorded.asked.map(() => ["same", ""]),
        );
        expect(report.identity).toBe(recorded.asked.length === 0 ? "unknown" : "unchanged");
        expect(passesGate("strict", [report])).toBe(recorded.asked.length > 0);
        expect(
          report.evaluations.every(({ recordedHash, recheckedHash }) => recordedHash === recheckedHash),
        ).toBe(true);
      }),
    );
  });

  it("differs under another policy exactly where the decisions do", () => {
    fc.assert(
      fc.property(run, policy, (parts, rules) => {
        const recorded = record(parts);
        const [before, now] = [parts.policy, rules].map((each) => rulesPolicy(JSON.stringify(each)));
        const differs = recorded.asked.map(({ request, seq }) => {
          const [a, b] = [before!, now!].map((each) => each.decide(request));
          if (!a?.ok || !b?.ok) throw new Error("rules always answer");
          const subject = ({ decision: { outcome: what, kind, capability } }: typeof a) => [
            what,
            kind,
            capability,
          ];
          return [seq, JSON.stringify(subject(a)) !== JSON.stringify(subject(b))];
        });
        const report = recheck(recorded, now!);
        expect(report.evaluations.map(({ seq, result }) => [seq, result === "different"])).toEqual(differs);
        expect(
          report.evaluations.every(
            (each) => each.result !== "same" || each.recordedHash === each.recheckedHash,
          ),
        ).toBe(true);
      }),
    );
  });

  it("gives a report whose JSON and text are well formed, with and without kept views", () => {
    fc.assert(
      fc.property(run, policy, (parts, rules) => {
        const recorded = record(parts);
        const now = rulesPolicy(JSON.stringify(rules));
        const report = recheck(recorded, now);
        const parsed = JSON.parse(reportJson(report));
        expect(parsed.evaluations).toHaveLength(report.evaluations.length);
        expect(parsed.differences + report.evaluations.filter(({ result }) => result === "same").length).toBe(
          parsed.rechecked,
        );
        const text = reportText(report);
        expect(text.split("\n")).toHaveLength(report.evaluations.length + report.notes.length + 2);
        expect(reportText(recheck(recorded, now, { fold: { keepViews: false } }))).toBe(text);
      }),
    );
  });
});
