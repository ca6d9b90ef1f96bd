/**
 * The helpers for tests (sdk/testing.ts), against a real server.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { RunsealClient } from "../../../sdk/client.ts";
import type { RecheckUnder, RecordedEvaluation, RecordedRun } from "../../../sdk/testing.ts";
import {
  assertRecheck,
  RecheckAssertionError,
  recheck,
  recheckDiffers,
  recheckPartial,
} from "../../../sdk/testing.ts";
import { jsonText, parseJsonValue } from "../../../shared/json/value.ts";
import { EXAMPLES, policyFile, type Recorded, recordedRuns } from "./recorded.ts";

const rulesOf = (name: "default" | "strict"): RecheckUnder => ({
  policy: `{"rules":${readFileSync(policyFile(name), "utf8")}}`,
});
const DEFAULT = rulesOf("default");
const STRICT = rulesOf("strict");

let recorded: Recorded;
let run: RecordedRun;
let empty: RecordedRun;
let absent: RecordedRun;
/** Steps that the strict policy decides otherwise. */
let steps: number[];

/** What the assertion failed for. */
async function failureOf(assertion: Promise<unknown>): Promise<RecheckAssertionError> {
  const error: unknown = await assertion.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(RecheckAssertionError);
  return error as RecheckAssertionError;
}

beforeAll(async () => {
  recorded = await recordedRuns();
  const { client } = recorded;
  run = { client, principal: "bot", run: "refund-10417" };
  empty = { ...run, run: "empty" };
  absent = { ...run, run: "nope" };
  const { report } = await failureOf(recheck(run, STRICT));
  steps = [
    ...new Set(
      report?.evaluations.filter(({ result }) => result === "different").map(({ stepIndex }) => stepIndex),
    ),
  ];
});

describe("recheck", () => {
  it("holds under the policy that was recorded, and gives the report", async () => {
    const report = await recheck(run, DEFAULT);
    expect([report.same, report.complete, report.rechecked > 0]).toEqual([true, true, true]);
  });

  it("fails where something differs, as an assertion with the report in it", async () => {
    const error = await failureOf(recheck(run, STRICT));
    expect([error.name, error.code, error.failures.length]).toEqual(["AssertionError", "differs", 1]);
    expect(error.message).toMatch(/^[0-9]+ evaluation\(s\) differ\nrun refund-10417 COMPLETED/);
    expect(error.message).toContain("DIFFERENT step ");
    expect(error.expected).toEqual({ gate: "strict" });
  });
});

describe("recheckDiffers", () => {
  it("holds for exactly the steps that differ", async () => {
    expect(steps.length).toBeGreaterThan(1);
    await recheckDiffers(run, STRICT, ...steps);
    const [first = 0] = steps;
    for (const wrong of [[first], [...steps, 99]])
      expect((await failureOf(recheckDiffers(run, STRICT, ...wrong))).code).toBe("other-steps");
    expect((await failureOf(recheckDiffers(run, DEFAULT, first))).code).toBe("other-steps");
  });

  it("is refused without a step, before anything is asked", async () => {
    const away = new RunsealClient({
      url: "http://127.0.0.1:1",
      apiKey: "k",
      fetch: () => Promise.reject(new Error("asked")),
    });
    for (const wrong of [[], [1, 1], [-1], [0.5]])
      await expect(recheckDiffers({ ...run, client: away }, STRICT, ...wrong)).rejects.toMatchObject({
        code: "recheck-check",
      });
    await expect(assertRecheck({ ...run, client: away }, STRICT, {})).rejects.toMatchObject({
      code: "recheck-check",
    });
  });
});

describe("recheckPartial", () => {
  it("lets pass what can't be re-checked, and nothing that differs", async () => {
    await recheckPartial(run, DEFAULT);
    expect((await failureOf(recheckPartial(run, STRICT))).code).toBe("differs");
    // The specs of this tool are not stored: its evaluation can't be re-checked.
    const { client } = recorded;
    const lines = readFileSync(join(EXAMPLES, "runs", "refund-10417.ndjson"), "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) =>
        line.replace(/9f63463bd8cb8bc63d482091320ffcff2b61b6224853ad3fcd27dbfcc152c014/g, "ab".repeat(32)),
      );
    await client.appendTexts("partial", lines);
    const partial = { client, principal: "partial", run: "refund-10417" };
    const report = await recheckPartial(partial, DEFAULT);
    expect([report.complete, report.notRecheckable]).toEqual([false, 1]);
    expect((await failureOf(recheck(partial, DEFAULT))).code).toBe("incomplete");
    expect((await failureOf(recheckDiffers(partial, STRICT, ...steps))).code).toBe("incomplete");
    await assertRecheck(partial, STRICT, { differs: steps, partial: true });
  });
});

describe("each of them", () => {
  it("fails on what proves nothing: a run without evaluations, and one that is not there", async () => {
    for (const [subject, code] of [
      [empty, "nothing-rechecked"],
      [absent, "no-run"],
      [{ ...run, principal: "nobody" }, "no-run"],
    ] as const)
      for (const assertion of [
        () => recheck(subject, DEFAULT),
        () => recheckPartial(subject, DEFAULT),
        () => recheckDiffers(subject, DEFAULT, 1),
        () => recheck(subject, { policy: { decide: () => ({ outcome: "allow" }) } }),
      ])
        expect((await failureOf(assertion())).code).toBe(code);
  });

  it("fails with the service's own words for a wrong key, a wrong policy, and one that is not stored", async () => {
    const client = new RunsealClient({ url: recorded.url, apiKey: "rsk_wrong" });
    await expect(recheck({ ...run, client }, DEFAULT)).rejects.toMatchObject({ status: 401 });
    await expect(recheck(run, { policy: { rules: { tools: 1 } } })).rejects.toMatchObject({ status: 422 });
    await expect(recheck(run, { policy: { name: "nope" } })).rejects.toMatchObject({ status: 404 });
  });

  it("asks a policy that runs in the test", async () => {
    const seen: RecordedEvaluation[] = [];
    const asRecorded = {
      policy_id: "mine/v1",
      decide(evaluation: RecordedEvaluation, text: string) {
        seen.push(evaluation);
        // As text: a number that is asked about is then the one that was recorded.
        const line = parseJsonValue(text);
        return line instanceof Map ? jsonText(line.get("recorded") ?? null) : "";
      },
    };
    const report = await recheck(run, { policy: asRecorded });
    expect([report.rechecked, report.policyId]).toEqual([seen.length, "mine/v1"]);
    const deny = { decide: () => ({ outcome: "deny" as const }) };
    expect((await failureOf(recheck(run, { policy: deny }))).code).toBe("differs");
    const fails = {
      decide(): never {
        throw new Error("boom");
      },
    };
    expect((await failureOf(recheck(run, { policy: fails }))).message).toContain("policy failed: boom");
  });

  it("re-checks under the tools as they are now", async () => {
    const error = await failureOf(recheck(run, { ...DEFAULT, tools: [] }));
    expect(error.message).toContain("is not among the current tools");
  });
});
