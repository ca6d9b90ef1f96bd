/**
 * A recorded run of any length, as a fold leaves it, for the re-check benches.
 *
 * @module
 */
import { nativeCrypto } from "../native/crypto.ts";
import type { EntryView, FieldView } from "../shared/entry/view.ts";
import { canonicalJson } from "../shared/json/canonical.ts";
import { RunFold } from "../shared/recheck/fold.ts";
import { contentHash } from "../shared/recheck/hash.ts";
import type { FoldedRun } from "../shared/recheck/model.ts";

const CLASSES = ["read_only", "local_mutation", "remote_mutation", "destructive"] as const;
const OUTCOMES = ["allow", "allow", "require_approval", "deny"] as const;

/** What decided the run, as rules and in Cedar. */
export const RULES = JSON.stringify({
  policy_id: "bench/v1",
  side_effects: {
    read_only: "allow",
    local_mutation: "allow",
    remote_mutation: "require_approval",
    destructive: "deny",
  },
});
export const CEDAR = JSON.stringify(`
permit(principal, action, resource) when { ["read_only", "local_mutation"].contains(context.tool.side_effect) };
@outcome("require_approval") permit(principal, action, resource) when { context.tool.side_effect == "remote_mutation" };
`);

/** Canonical texts of the specs by hash. */
export const SPECS: ReadonlyMap<string, string> = new Map(
  CLASSES.map((side) => {
    const text = canonicalJson(
      JSON.stringify({
        name: `tool_${side}`,
        description: "a tool",
        input_schema: { type: "object", properties: { path: { type: "string" }, n: { type: "integer" } } },
        side_effect: side,
        timeout: 2_000_000_000,
      }),
    );
    return [contentHash(nativeCrypto, text), text];
  }),
);

function fields(values: Readonly<Record<string, unknown>>): Map<string, FieldView> {
  return new Map(
    Object.entries(values).map(([name, value]) => [name, { text: canonicalJson(JSON.stringify(value)) }]),
  );
}

/** The entries of a run of `count` evaluations, one after the other. */
export function* benchEntries(count: number): Generator<EntryView> {
  const hashes = [...SPECS.keys()];
  let seq = 0;
  const entry = (kind: string, step: string | null, action: Readonly<Record<string, unknown>>): EntryView => {
    seq++;
    return {
      seq,
      hash: seq.toString(16).padStart(64, "0"),
      id: `e${seq}`,
      kind,
      recorded_at: BigInt(seq),
      occurred_at: BigInt(seq),
      session: null,
      run: "bench",
      step,
      call: null,
      actor: null,
      action: fields(action),
      authorization: null,
      outcome: null,
    };
  };
  yield entry("run.created", null, { goal: "a bench", limits: { max_steps: 50 }, tools: hashes });
  for (let index = 0; index < count; index++) {
    const step = `s${index}`;
    const which = index % CLASSES.length;
    const tool = `tool_${CLASSES[which]}`;
    const args = {
      path: `/home/agent/notes/${index}.txt`,
      n: index,
      flags: ["a", "b"],
      note: "some text of a call",
    };
    const subject = { args, tool };
    const asks = OUTCOMES[which] === "require_approval";
    yield entry("step.decided", step, { kind: "tool_call", index, tool, args });
    yield entry("policy.evaluated", step, {
      tool,
      args,
      spec_hash: hashes[which],
      policy_id: "bench/v1",
      decision: {
        outcome: OUTCOMES[which],
        reason: "as the policy says",
        ...(asks ? { kind: "remote_mutation", capability: subject, presentation: subject } : {}),
      },
      view: {
        status: "RUNNING",
        step_count: index + 1,
        model_calls: index,
        input_tokens: 100 * index,
        output_tokens: 10 * index,
        cached_input_tokens: 0,
        estimated_cost_micros: 5 * index,
        active_ms: 20 * index,
        steps: index,
        approvals: 0,
      },
    });
  }
  yield entry("run.completed", null, {});
}

/** The run, folded. */
export function benchRun(count: number): FoldedRun {
  const fold = new RunFold("bench", { maxText: Number.MAX_SAFE_INTEGER });
  for (const entry of benchEntries(count)) fold.add(entry);
  return fold.finish();
}
