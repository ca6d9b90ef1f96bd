import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { JsonReader } from "../../../shared/json/reader.ts";
import { cedarPolicy } from "../../../shared/recheck/cedar.ts";
import { decisionsPolicy } from "../../../shared/recheck/decisions.ts";
import { readDecisions } from "../../../shared/recheck/decisions-schema.ts";
import { evaluationLines } from "../../../shared/recheck/evaluations.ts";
import { rulesPolicy } from "../../../shared/recheck/rules.ts";
import { requestValue, viewValue } from "../../../shared/recheck/values.ts";
import { cedarEngine } from "../../support/cedar.ts";
import { OneCall } from "./one-call.ts";
import {
  answerOf,
  defaultPolicy,
  fixtureRun,
  LoopRun,
  lines,
  policyOf,
  recheck,
  strictPolicy,
  TOOLS,
  viewOf,
} from "./support.ts";

interface Line {
  readonly seq: number;
  readonly hash: string;
  readonly recorded: { readonly outcome: string };
  readonly request?: unknown;
  readonly run?: unknown;
  readonly steps?: unknown;
  readonly approvals?: unknown;
}

function linesOf(run: LoopRun, views = true): Line[] {
  const folded = run.log.fold();
  return [...evaluationLines(folded, { specs: run.specs.lookup, views })].map(
    (line) => JSON.parse(line) as Line,
  );
}

const given = (list: unknown) => decisionsPolicy(readDecisions(new JsonReader(JSON.stringify(list))));

describe("exported evaluations", () => {
  it("are what a policy in this process is handed", () => {
    const run = fixtureRun();
    const handed: unknown[] = [];
    const watch = policyOf((request, view) => {
      const { run: facts, steps, approvals } = viewValue(view);
      handed.push({ request: requestValue(request), run: facts, steps, approvals });
      return answerOf("allow");
    });
    recheck(run, watch);
    const exported = linesOf(run).map(({ request, run: facts, steps, approvals }) => ({
      request,
      run: facts,
      steps,
      approvals,
    }));
    expect(exported).toEqual(JSON.parse(JSON.stringify(handed)));
    expect(exported.at(-1)).toMatchObject({ approvals: [{ status: "approved" }] });
    expect(linesOf(run, false).every((line) => !("steps" in line))).toBe(true);
  });

  it("show the steps that each counted, also where a later one counted fewer", () => {
    const run = new OneCall()
      .created()
      .step()
      .evaluated({ view: viewOf({ steps: 1 }) })
      .evaluated();
    const exported = [...evaluationLines(run.log.fold(), { specs: run.specs.lookup, views: true })];
    expect(exported.map((line) => (JSON.parse(line) as Line).steps)).toEqual([
      [expect.objectContaining({ id: "s1" })],
      null,
    ]);
  });

  it("whose recorded decisions are sent back are the same, and others differ as a policy that gives them", () => {
    const run = fixtureRun();
    const exported = linesOf(run);
    const same = recheck(
      run,
      given(exported.map(({ seq, hash, recorded }) => ({ seq, hash, decision: recorded }))),
    );
    expect([same.same, same.rechecked, same.complete]).toEqual([true, 5, true]);
    const strict = recheck(fixtureRun(strictPolicy()), strictPolicy()).evaluations;
    expect(strict.length).toBe(4);
    const denied = recheck(run, given(exported.map(({ hash }) => ({ hash, decision: { outcome: "deny" } }))));
    expect(lines(denied)).toEqual([
      "0 read different allow->deny",
      "1 wipe same deny->deny",
      "2 publish different require_approval->deny",
      "2 publish different require_approval->deny resume",
      "3 write different allow->deny",
    ]);
  });

  it("that get no decision are not re-checked, whichever they are", () => {
    const run = fixtureRun();
    const exported = linesOf(run);
    fc.assert(
      fc.property(fc.subarray(exported, { minLength: 1 }), (some) => {
        const report = recheck(run, given(some.map(({ seq, recorded }) => ({ seq, decision: recorded }))));
        expect([report.rechecked, report.notRecheckable]).toEqual([some.length, 5 - some.length]);
        expect(report.complete).toBe(some.length === 5);
        const left = report.evaluations.filter(({ result }) => result === "not_recheckable");
        expect(left.every(({ reason }) => reason === "no-decision")).toBe(true);
      }),
    );
  });
});

describe("any run that rules decided", () => {
  const outcome = fc.constantFrom("allow", "require_approval", "deny", "abort");
  const classes = fc.record({
    read_only: outcome,
    local_mutation: outcome,
    remote_mutation: outcome,
    destructive: outcome,
  });
  const calls = fc.array(fc.constantFrom(...TOOLS.keys()), { minLength: 1, maxLength: 6 });
  const engine = cedarEngine();

  /** The outcomes by class in Cedar. */
  function translated(sideEffects: Record<string, string>): string {
    return Object.entries(sideEffects)
      .map(([side, result]) => {
        const effect = result === "deny" || result === "abort" ? "forbid" : "permit";
        return `@outcome("${result}") ${effect}(principal, action, resource) when { context.tool.side_effect == "${side}" };`;
      })
      .join("\n");
  }

  it("is the same under the same rules in Cedar, and differs where they do", () => {
    fc.assert(
      fc.property(classes, classes, calls, (before, now, tools) => {
        const run = new LoopRun(policyFrom(before));
        for (const tool of tools) run.call({ tool, args: '{"n":1}' });
        const log = run.complete();
        const cedar = (side: Record<string, string>) => cedarPolicy(JSON.stringify(translated(side)), engine);
        expect(lines(recheck(log, cedar(before)))).toEqual(lines(recheck(log, policyFrom(before))));
        expect(recheck(log, cedar(before)).same).toBe(true);
        expect(lines(recheck(log, cedar(now)))).toEqual(lines(recheck(log, policyFrom(now))));
      }),
      { numRuns: 60 },
    );
  });

  it("is the default policy's fixture, too", () => {
    expect(
      lines(
        recheck(
          fixtureRun(defaultPolicy()),
          cedarPolicy(
            JSON.stringify(
              translated({
                read_only: "allow",
                local_mutation: "allow",
                remote_mutation: "require_approval",
                destructive: "deny",
              }),
            ),
            engine,
          ),
        ),
      ).every((line) => line.includes("same")),
    ).toBe(true);
  });
});

function policyFrom(sideEffects: Record<string, string>) {
  return rulesPolicy(JSON.stringify({ side_effects: sideEffects }));
}
