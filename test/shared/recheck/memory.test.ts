import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import type { EntryView, FieldView } from "../../../shared/entry/view.ts";
import { RunFold } from "../../../shared/recheck/fold.ts";
import { allow, OneCall } from "./one-call.ts";
import { Log, recheck } from "./support.ts";

/** Entries with much text, made one at a time. */
function* bulk(count: number, chars: number): Generator<EntryView> {
  const run = new OneCall().created();
  yield* run.log.entries.splice(0);
  for (let n = 0; n < count; n++) {
    const args = { n, text: `${n}`.padEnd(chars, "x") };
    run.step({ kind: "tool_call", tool: "read", args }, `s${n}`).evaluated({ args }, `s${n}`);
    yield* run.log.entries.splice(0);
  }
}

describe("memory of a fold", () => {
  it("is bounded by the text budget: what found no room is listed, and never re-checked", () => {
    const fold = new RunFold("r1", { maxText: 100_000 });
    for (const entry of bulk(100, 2_000)) {
      fold.add(entry);
      expect(fold.keptText).toBeLessThanOrEqual(100_000);
    }
    const folded = fold.finish();
    const lost = folded.evaluations.filter(({ problem }) => problem?.reason === "text-budget");
    expect(lost.length).toBeGreaterThan(60);
    expect(folded.evaluations).toHaveLength(100);
    const kept = [...folded.steps, ...folded.evaluations].reduce(
      (sum, { args }) => sum + (args?.length ?? 0),
      0,
    );
    expect(kept).toBeLessThanOrEqual(100_000);
    const run = { log: { fold: () => folded } as unknown as Log, specs: new OneCall().specs };
    const report = recheck(run, allow);
    expect(report.complete).toBe(false);
    expect(report.evaluations.at(-1)!.detail).toBe(
      "not re-checkable: the run has more text than a re-check keeps",
    );
  });

  it("counts decisions too", () => {
    const run = new OneCall().created();
    for (let n = 0; n < 20; n++)
      run.evaluated({ decision: { outcome: "deny", reason: "x".repeat(1_000) } }, null);
    const { evaluations } = run.log.fold({ maxText: 5_500 });
    expect(evaluations.filter(({ problem }) => problem === null)).toHaveLength(5);
    expect(evaluations.filter(({ decision }) => decision.reason !== "")).toHaveLength(5);
  });

  it("has room for more where no views are kept", () => {
    const kept = (keepViews: boolean) => {
      const fold = new RunFold("r1", { keepViews });
      for (const entry of bulk(20, 1_000)) fold.add(entry);
      return fold.keptText;
    };
    expect(kept(false)).toBeLessThan(0.6 * kept(true));
  });

  it("does not keep the stored content that a small text was cut from", () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const size = 2 ** 20;
    const count = 200;
    const log = new Log();
    for (let n = 0; n < count; n++) log.add("policy.evaluated", { step: `s${n}` });
    collect();
    const before = process.memoryUsage().heapUsed;
    const fold = new RunFold(log.run);
    for (const [n, entry] of log.entries.entries()) {
      const texts = {
        args: `{"argument":"number ${n}"}`,
        decision: `{"outcome":"allow","reason":"number ${n}"}`,
        tool: `"a tool with a name, number ${n}"`,
      };
      // As a reader of stored content gives it: windows on one long text, whose rest is a value that nobody reads.
      const content = Object.values(texts).join("").padEnd(size, `${n}`);
      const field = (text: string): FieldView => {
        const at = content.indexOf(text);
        return { text: content.slice(at, at + text.length) };
      };
      fold.add({
        ...entry,
        action: new Map(Object.entries(texts).map(([name, text]) => [name, field(text)])),
      });
    }
    collect();
    const grown = process.memoryUsage().heapUsed - before;
    expect(fold.finish().evaluations[count - 1]).toMatchObject({
      args: `{"argument":"number ${count - 1}"}`,
      problem: null,
    });
    expect(grown).toBeLessThan((count * size) / 4);
  });
});
