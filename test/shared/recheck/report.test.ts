import { describe, expect, it } from "vitest";
import { passesGate, reportJson } from "../../../shared/recheck/report.ts";
import { reportText, shown } from "../../../shared/recheck/text.ts";
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
} from "./support.ts";

/** agentrt's text, to the letter. */
const PINNED_TEXT = `run id-01 COMPLETED: 3 of 5 re-checked evaluations differ; policy changed: recorded "default/v1", given "strict/v1"; recorded specs
DIFFERENT step 2 seq 14 publish: require_approval -> deny: side effect remote_mutation is deny by policy
DIFFERENT step 2 seq 18 publish (on resume): require_approval -> deny: side effect remote_mutation is deny by policy
DIFFERENT step 3 seq 23 write: allow -> deny: side effect local_mutation is deny by policy
same      step 0 seq 5 read: allow
same      step 1 seq 10 wipe: deny
`;

/** The hash that agentrt's own fixture, which this run repeats, gives its one approval. */
const APPROVAL_HASH = "d93da328f90c100de532004da432ba577ae799ed30a607eb87bed7e3b6bf73e0";

describe("the report of agentrt's fixture", () => {
  it("has the pinned text", () => {
    expect(reportText(recheck(fixtureRun(), strictPolicy()))).toBe(PINNED_TEXT);
  });

  it("names each evaluation, and the approval hash that agentrt pinned", () => {
    const report = recheck(fixtureRun(), defaultPolicy());
    expect(lines(report)).toEqual([
      "0 read same allow->allow",
      "1 wipe same deny->deny",
      "2 publish same require_approval->require_approval",
      "2 publish same require_approval->require_approval resume",
      "3 write same allow->allow",
    ]);
    expect(report.evaluations[2]!.recordedHash).toBe(APPROVAL_HASH);
    expect(report.evaluations[3]!.recheckedHash).toBe(APPROVAL_HASH);
    expect(report.evaluations.map(({ recordedHash }) => recordedHash !== "")).toEqual([
      false,
      false,
      true,
      true,
      false,
    ]);
    expect(report).toMatchObject({
      identity: "unchanged",
      same: true,
      complete: true,
      rechecked: 5,
      notes: [],
    });
  });

  it("has the pinned JSON, members in order", () => {
    const read = '{"outcome":"allow","reason":"side effect read_only is allow by policy"}';
    const wipe = '{"outcome":"deny","reason":"side effect destructive is deny by policy"}';
    const subject = '{"args":{"n":3},"tool":"publish"}';
    const asked = `{"outcome":"require_approval","reason":"side effect remote_mutation is require_approval by policy","kind":"remote_mutation","capability":${subject},"presentation":${subject}}`;
    const denied = '{"outcome":"deny","reason":"side effect remote_mutation is deny by policy"}';
    const written = '{"outcome":"allow","reason":"side effect local_mutation is allow by policy"}';
    const refused = '{"outcome":"deny","reason":"side effect local_mutation is deny by policy"}';
    const tail = '"spec_source":"recorded","policy_id":"default/v1"}';
    const hash = `"recorded_hash":"${APPROVAL_HASH}"`;
    const evaluations = [
      `{"step_index":0,"step_id":"id-02","seq":5,"tool":"read","result":"same","recorded":${read},"rechecked":${read},${tail}`,
      `{"step_index":1,"step_id":"id-03","seq":10,"tool":"wipe","result":"same","recorded":${wipe},"rechecked":${wipe},${tail}`,
      `{"step_index":2,"step_id":"id-04","seq":14,"tool":"publish","result":"different","recorded":${asked},"rechecked":${denied},${hash},${tail}`,
      `{"step_index":2,"step_id":"id-04","seq":18,"tool":"publish","on_resume":true,"result":"different","recorded":${asked},"rechecked":${denied},${hash},${tail}`,
      `{"step_index":3,"step_id":"id-06","seq":23,"tool":"write","result":"different","recorded":${written},"rechecked":${refused},${tail}`,
    ];
    expect(reportJson(recheck(fixtureRun(), strictPolicy()))).toBe(
      `{"run_id":"id-01","run_status":"COMPLETED","policy_id":"strict/v1","identity":"changed","spec_source":"recorded","evaluations":[${evaluations.join(",")}],"same":false,"differences":3,"rechecked":5,"not_recheckable":0,"complete":true}`,
    );
  });

  it("keeps the members in order where all of them are there", () => {
    const run = new LoopRun(defaultPolicy());
    run.call({ tool: "publish", args: '{"n":3}', approval: "waiting" });
    const other = policyOf(() => answerOf("require_approval", { kind: "remote_mutation" }));
    const report = JSON.parse(reportJson(recheck(run, other))) as Record<string, Record<string, unknown>[]>;
    expect(Object.keys(report)).toEqual([
      ...["run_id", "run_status", "policy_id", "identity", "spec_source", "notes", "evaluations", "same"],
      ...["differences", "rechecked", "not_recheckable", "complete"],
    ]);
    expect(Object.keys(report.evaluations![0]!)).toEqual([
      ...["step_index", "step_id", "seq", "tool", "result", "recorded", "rechecked", "recorded_hash"],
      ...["rechecked_hash", "detail", "spec_source", "policy_id"],
    ]);
  });

  it("is JSON even where a policy's words are no Unicode text and its capability no JSON", () => {
    const policy = policyOf(() => answerOf("allow\ud800", { reason: "\udc00", capability: '{"a":1,"a":2}' }));
    const report = JSON.parse(reportJson(recheck(fixtureRun(), policy)));
    expect(report.evaluations[0].rechecked).toEqual({
      outcome: "allow\ufffd",
      reason: "\ufffd",
      capability: '{"a":1,"a":2}',
    });
  });
});

describe("the text", () => {
  it("is one sanitized line an evaluation, differences first, then notes", () => {
    const run = new LoopRun(
      policyOf(() => answerOf("allow")),
      { run: "r\u001b[31m\u202e" },
    );
    for (let n = 0; n < 2; n++) run.call({ tool: "read", args: `{"n":${n}}` });
    let calls = 0;
    const reason = `line one\nline two ${"x".repeat(300)}`;
    const policy = policyOf(() => (calls++ === 0 ? answerOf("allow") : answerOf("deny", { reason })));
    expect(reportText(recheck(run, policy))).toBe(
      "run r\\x1b[31m\\u{202e} RUNNING: 1 of 2 re-checked evaluations differ; policy identity unknown; recorded specs\n" +
        `DIFFERENT step 1 seq 10 read: allow -> deny: line one line two ${"x".repeat(240 - 18)}…\n` +
        "same      step 0 seq 5 read: allow\n" +
        "note: the run is RUNNING: re-checked up to its current state\n",
    );
  });

  it("shows `none` where the policy gave no decision, `-` where there is no tool, and the detail of a skipped one", () => {
    const run = fixtureRun();
    run.log.add("step.failed", { step: "id-99", action: { detail: "policy error: rules\tdown" } });
    const text = reportText(
      recheck(
        run,
        policyOf(() => ({ ok: false, error: "down" })),
      ),
    );
    expect(text).toContain("DIFFERENT step 0 seq 5 read: allow -> none: policy failed: down\n");
    expect(text).toContain(
      "skipped   step -1 seq 29 -: policy failed; no evaluation recorded: rules\\x09down\n",
    );
  });

  it("has each evaluation once: the ones that differ, then the rest in order", () => {
    const run = new OneCall().created().step();
    run.evaluated({ spec_hash: undefined }).evaluated().evaluated({ tool: "write" });
    const policy = policyOf(({ tool }) => answerOf(tool === "write" ? "deny" : "allow"));
    const marks = reportText(recheck(run, policy)).split("\n").slice(1, 4);
    expect(marks.map((line) => line.slice(0, 22))).toEqual([
      "DIFFERENT step 0 seq 6",
      "skipped   step 0 seq 4",
      "same      step 0 seq 5",
    ]);
  });

  it("names of the recorded identities those that differ, each once", () => {
    const run = new OneCall().created().step();
    for (const policy_id of ["b", "a", "b", "c"]) run.evaluated({ policy_id });
    const text = reportText(
      recheck(
        run,
        policyOf(() => answerOf("allow"), "a"),
      ),
    );
    expect(text).toContain('; policy changed: recorded "b", "c", given "a"; recorded specs\n');
  });

  it("names each recorded identity once, and says when it is unchanged", () => {
    const run = fixtureRun(defaultPolicy());
    expect(reportText(recheck(run, defaultPolicy()))).toContain(
      '; policy unchanged: "default/v1"; recorded specs\n',
    );
    expect(reportText(recheck(run, strictPolicy()))).toContain('recorded "default/v1", given "strict/v1"');
  });

  it("cuts at 240 bytes and never inside a character", () => {
    expect(shown("é".repeat(120))).toBe("é".repeat(120));
    expect(shown("é".repeat(121))).toBe(`${"é".repeat(120)}…`);
    expect(shown(`x${"€".repeat(80)}`)).toBe(`x${"€".repeat(79)}…`);
    expect(shown("\u007f\u009b\u2028\ud800\u200b\u{e0041}")).toBe(
      "\\x7f\\x9b\\u{2028}\ufffd\\u{200b}\\u{e0041}",
    );
  });
});

describe("gates", () => {
  const passing = { same: true, rechecked: 1, complete: true };

  it.each([
    ["all well", [passing], true, true],
    ["a difference", [passing, { same: false, rechecked: 3, complete: true }], false, false],
    ["something left out", [passing, { same: true, rechecked: 0, complete: false }], false, true],
    ["nothing re-checked", [{ same: true, rechecked: 0, complete: true }], false, false],
    ["no run", [], false, false],
    ["an empty run beside a full one", [passing, { same: true, rechecked: 0, complete: true }], true, true],
  ] as const)("%s", (_name, reports, strict, proxy) => {
    expect(passesGate("strict", reports)).toBe(strict);
    expect(passesGate("proxy", reports)).toBe(proxy);
  });

  it("is not passed by a real report that re-checked nothing", () => {
    const report = recheck(new LoopRun(defaultPolicy()).complete(), defaultPolicy());
    expect(report).toMatchObject({ same: true, complete: true, rechecked: 0, identity: "unknown" });
    expect(report.notes).toEqual(["no policy evaluation is recorded"]);
    expect(passesGate("proxy", [report])).toBe(false);
    expect(passesGate("strict", [report])).toBe(false);
  });
});
