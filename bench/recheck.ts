/**
 * Evaluations a second that a re-check makes, beside its bare engine asked the same questions in a loop; in one process,
 * in CPU time. And the cost of one evaluation in runs of 10^2 to 10^5.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import {
  preparsePolicySet,
  type StatefulAuthorizationCall,
  statefulIsAuthorized,
} from "@cedar-policy/cedar-wasm/nodejs";
import { nativeCrypto } from "../native/crypto.ts";
import { cedarPolicy } from "../shared/recheck/cedar.ts";
import { CedarEngine } from "../shared/recheck/cedar-engine.ts";
import { recheckRunSync } from "../shared/recheck/compare.ts";
import type { FoldedRun } from "../shared/recheck/model.ts";
import { type Policy, type PolicyAnswer, PolicyRequest } from "../shared/recheck/policy.ts";
import { type RulesPolicy, rulesPolicy } from "../shared/recheck/rules.ts";
import { decodeSpec } from "../shared/recheck/spec.ts";
import type { PolicyView } from "../shared/recheck/view.ts";
import { benchRun, CEDAR, RULES, SPECS } from "./recheck-run.ts";
import { type Comparison, compare } from "./table.ts";

const DECODED = new Map(
  [...SPECS].flatMap(([hash, text]) => {
    const decoded = decodeSpec(text);
    return decoded.ok ? [[hash, decoded.value]] : [];
  }),
);
const OPTIONS = { crypto: nativeCrypto, specs: (hash: string) => SPECS.get(hash) };

/** Evaluations per CPU second: another process's work does not count. */
function rate(evaluations: number, rounds: number, work: () => void): number {
  const before = process.cpuUsage();
  for (let round = 0; round < rounds; round++) work();
  const { user, system } = process.cpuUsage(before);
  return (evaluations * rounds) / ((user + system) / 1e6);
}

function recheck(folded: FoldedRun, policy: Policy): void {
  const report = recheckRunSync(folded, policy, OPTIONS);
  if (!report.same || report.rechecked !== folded.evaluations.length)
    throw new Error("the run did not re-check as the same");
}

/** What the policy is asked during a re-check, kept to be asked again without one. */
function questions(folded: FoldedRun, policy: Policy): PolicyRequest[] {
  const asked: PolicyRequest[] = [];
  const decide = (request: PolicyRequest, view: PolicyView) => {
    asked.push(request);
    return policy.decide(request, view);
  };
  recheckRunSync(folded, { id: policy.id, decide }, OPTIONS);
  return asked;
}

/** The least that tells which decisions differ: the recorded call as a request, the engine's answer, a comparison. */
function loopByHand(folded: FoldedRun, policy: RulesPolicy): void {
  const answers: PolicyAnswer[] = [];
  let same = 0;
  for (const { stepId, tool, args, specHash, decision: recorded } of folded.evaluations) {
    const spec = DECODED.get(specHash);
    if (spec === undefined) throw new Error("a spec is missing");
    const answer = policy.decide(new PolicyRequest(folded.runId, stepId ?? "", tool, spec, args));
    answers.push(answer);
    if (!answer.ok) continue;
    const { outcome, kind, capability, presentation } = answer.decision;
    if (outcome === recorded.outcome && kind === recorded.kind && capability === recorded.capability)
      if (presentation === recorded.presentation) same++;
  }
  if (same !== answers.length) throw new Error("the run did not come out as the same");
}

/** The engine whose answers become calls to the bare one. */
class RecordingEngine extends CedarEngine {
  readonly calls: StatefulAuthorizationCall[] = [];

  override authorize(set: { key: string; text: string }, call: (id: string) => string): unknown {
    this.calls.push(JSON.parse(call("bench")) as StatefulAuthorizationCall);
    return super.authorize(set, call);
  }
}

function cedarModule(): WebAssembly.Module {
  const entry = createRequire(import.meta.url).resolve("@cedar-policy/cedar-wasm/nodejs");
  const bytes = readFileSync(join(dirname(entry), "cedar_wasm_bg.wasm"));
  const { Module } = WebAssembly as unknown as { Module: new (bytes: Uint8Array) => WebAssembly.Module };
  return new Module(bytes);
}

export async function benchRecheck(rounds: number, count: number): Promise<Comparison[]> {
  const folded = benchRun(count);
  const rules = rulesPolicy(RULES, nativeCrypto);
  const asked = questions(folded, rules);
  const module = cedarModule();
  const cedar = cedarPolicy(CEDAR, new CedarEngine(module), { crypto: nativeCrypto });
  const few = benchRun(Math.max(100, count / 10));
  const recording = new RecordingEngine(module);
  recheck(few, cedarPolicy(CEDAR, recording, { crypto: nativeCrypto }));
  preparsePolicySet("bench", { staticPolicies: JSON.parse(CEDAR) as string });
  const bareRules = () => {
    for (const request of asked) rules.decide(request);
  };
  const byHand = () => loopByHand(folded, rules);
  const bareCedar = () => {
    for (const call of recording.calls) statefulIsAuthorized(call);
  };
  const repeats = 10;
  for (let warm = 0; warm < 3; warm++) {
    bareRules();
    byHand();
    bareCedar();
    recheck(folded, rules);
    recheck(few, cedar);
  }
  const comparisons = [
    await compare(
      "recheck under rules, beside a loop that asks the bare engine and compares (evaluations/s)",
      rounds,
      {
        ours: async () => rate(count, repeats, () => recheck(folded, rules)),
        floor: async () => rate(count, repeats, byHand),
      },
    ),
    await compare("recheck under rules, beside a loop that asks and forgets (evaluations/s)", rounds, {
      ours: async () => rate(count, repeats, () => recheck(folded, rules)),
      floor: async () => rate(count, repeats, bareRules),
    }),
    await compare(
      "recheck under cedar, beside a loop that asks the bare engine, preparsed (evaluations/s)",
      rounds,
      {
        ours: async () => rate(few.evaluations.length, 2, () => recheck(few, cedar)),
        floor: async () => rate(few.evaluations.length, 2, bareCedar),
      },
    ),
  ];
  const longest = 10 * count;
  for (const [name, policy, longer] of [
    ["rules", rules, benchRun(longest)],
    ["cedar", cedar, benchRun(longest / 10)],
  ] as const) {
    const short = benchRun(100);
    const total = longer.evaluations.length;
    comparisons.push(
      await compare(`recheck under ${name}: a run of ${total} beside one of 100 (evaluations/s)`, rounds, {
        ours: async () => rate(total, 1, () => recheck(longer, policy)),
        floor: async () => rate(100, total / 100, () => recheck(short, policy)),
      }),
    );
  }
  return comparisons;
}

if (process.argv[1]?.endsWith("recheck.ts")) {
  const { table } = await import("./table.ts");
  console.log(table(await benchRecheck(process.argv.includes("--quick") ? 3 : 7, 10_000)));
}
