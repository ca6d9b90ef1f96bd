import { describe, expect, it } from "vitest";
import { cedarPolicy } from "../../../shared/recheck/cedar.ts";
import type { Policy } from "../../../shared/recheck/policy.ts";
import { passesGate, reportJson } from "../../../shared/recheck/report.ts";
import { cedarEngine } from "../../support/cedar.ts";
import { describeWithShared, readShared } from "../../support/shared-files.ts";
import { OneCall } from "./one-call.ts";
import { answerOf, defaultPolicy, fixtureRun, LoopRun, lines, policyOf, raw, recheck } from "./support.ts";

const engine = cedarEngine();
const cedar = (
  policies: string,
  more: Record<string, unknown> = {},
  policyId: string | null = null,
): Policy => cedarPolicy(JSON.stringify({ policies, ...more }), engine, { policyId });

/** The default policy of the fixture, in Cedar. */
const DEFAULT = `
@id("harmless") permit(principal, action, resource)
  when { ["read_only", "local_mutation"].contains(context.tool.side_effect) };
@id("ask") @outcome("require_approval") @kind("remote_mutation") permit(principal, action, resource)
  when { context.tool.side_effect == "remote_mutation" };
`;
const ALL = "permit(principal, action, resource);";

/** A run of one evaluation with these arguments, asked about under the policy. */
function oneCall(args: string, policy: Policy, decision: unknown = { outcome: "allow" }) {
  const run = new OneCall()
    .created()
    .step({ kind: "tool_call", tool: "read", args: raw(args) })
    .evaluated({ args: raw(args), decision });
  const report = recheck(run, policy, { principal: "agent-1" });
  return { report, only: report.evaluations[0]! };
}

describe("a Cedar policy", () => {
  it("re-checks a run that a rules policy decided as the same, where it says the same", () => {
    const report = recheck(fixtureRun(), cedar(DEFAULT, {}, "default/v1"));
    expect(lines(report)).toEqual([
      "0 read same allow->allow",
      "1 wipe same deny->deny",
      "2 publish same require_approval->require_approval",
      "2 publish same require_approval->require_approval resume",
      "3 write same allow->allow",
    ]);
    expect(report.identity).toBe("unchanged");
    expect(passesGate("strict", [report])).toBe(true);
  });

  it("names the calls that a stricter one denies, and why", () => {
    const strict = `${DEFAULT} @id("no-writes") @reason("nothing is written on Sundays") @outcome("abort")
      forbid(principal, action in [Action::"write", Action::"publish"], resource);`;
    const report = recheck(fixtureRun(), cedar(strict));
    expect(lines(report).filter((line) => line.includes("different"))).toEqual([
      "2 publish different require_approval->abort",
      "2 publish different require_approval->abort resume",
      "3 write different allow->abort",
    ]);
    expect(report.evaluations.at(-1)?.rechecked?.reason).toBe("nothing is written on Sundays");
    expect(report.evaluations[1]?.rechecked?.reason).toBe("no policy permits it");
    expect(report.evaluations[0]?.rechecked?.reason).toBe("permitted by harmless");
  });

  it("asks for approval where one of the permits that apply does", () => {
    const { only } = oneCall('{"n":1}', cedar(`${ALL} @outcome("require_approval") @kind("k") ${ALL}`));
    expect(only.rechecked).toEqual({
      outcome: "require_approval",
      reason: "permitted by policy0, policy1",
      kind: "k",
      capability: '{"args":{"n":1},"tool":"read"}',
      presentation: '{"args":{"n":1},"tool":"read"}',
    });
  });

  it("takes the words of a recorded question, and tells another kind", () => {
    const asked = { outcome: "require_approval", kind: "k", capability: { a: 1 }, presentation: { q: "?" } };
    const ask = (kind: string) => cedar(`@outcome("require_approval") ${kind} ${ALL}`);
    expect(oneCall('{"n":1}', ask(""), asked).only).toMatchObject({
      result: "same",
      rechecked: asked2(asked),
    });
    expect(oneCall('{"n":1}', ask('@kind("k")'), asked).only.result).toBe("same");
    const other = oneCall('{"n":1}', ask('@kind("other")'), asked).only;
    expect([other.result, other.detail]).toEqual(["different", 'asks for approval kind "other", not "k"']);
  });

  it("asks again for the re-run of an attempt that was cut off, unless it denies it now", () => {
    const cutOff = { outcome: "require_approval", kind: "interrupted_side_effect", capability: {} };
    expect(oneCall('{"n":1}', cedar(ALL), cutOff).only.result).toBe("same");
    const denied = oneCall('{"n":1}', cedar("forbid(principal, action, resource);"), cutOff).only;
    expect([denied.result, denied.rechecked?.outcome]).toEqual(["different", "deny"]);
  });

  it("is handed the principal, the action, the resource, the spec's facts, and the run", () => {
    const policy = cedar(`permit(
      principal == Agent::"agent-1", action == Action::"read", resource == Tool::"read"
    ) when {
      context.args.n == 1 && context.tool.name == "read" && context.tool.side_effect == "read_only" &&
      !context.tool.terminal && context.run.id == "r1" && context.run.goal == "g" &&
      context.run.limits.max_steps == 3 && context.run.status == "RUNNING" && context.run.step_count == 1 &&
      context.run.created_at_ms == 1790845201000 && context.approvals.pending == 0
    };`);
    expect(oneCall('{"n":1}', policy).only.detail).toBe("");
    expect(oneCall('{"n":1}', policy).only.result).toBe("same");
    expect(oneCall('{"n":2}', policy).only.result).toBe("different");
  });

  it("counts the approvals as they stood at the evaluation", () => {
    const run = new LoopRun(defaultPolicy());
    run.call({ tool: "publish", args: '{"n":1}' });
    const policy = cedar(
      `@outcome("require_approval") permit(principal, action, resource)
       when { context.approvals.pending + context.approvals.approved == 0 || context.approvals.approved == 1 };`,
    );
    expect(lines(recheck(run.complete(), policy)).map((line) => line.split(" ")[2])).toEqual([
      "same",
      "same",
    ]);
  });

  it("may name the parts of a request as another system does", () => {
    const names = {
      principal: 'AgentCore::OAuthUser::"user"',
      action: "AgentCore::Action",
      resource: 'AgentCore::Gateway::"arn"',
      args: "input",
      entities: [
        { uid: { type: "AgentCore::OAuthUser", id: "user" }, attrs: {}, parents: [], tags: { tenant: "t" } },
      ],
    };
    const policy = cedar(
      `permit(principal is AgentCore::OAuthUser, action == AgentCore::Action::"read", resource == AgentCore::Gateway::"arn")
       when { principal.hasTag("tenant") && context.input.n == 1 };`,
      names,
    );
    expect(oneCall('{"n":1}', policy).only.result).toBe("same");
  });

  it("has an identity over everything that enters a decision", () => {
    const ids = [
      cedar(ALL),
      cedar(`${ALL} `),
      cedar(ALL, { args: "input" }),
      cedar(ALL, { principal: "User" }),
      cedar(ALL, { action: 'Action::"call"' }),
      cedar(ALL, { resource: "T" }),
      cedar(ALL, { entities: [{ uid: { type: "A", id: "b" }, attrs: {}, parents: [] }] }),
    ].map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(cedarPolicy(JSON.stringify(ALL), engine).id).toBe(ids[0]);
    expect(ids[0]).toMatch(/^runseal-cedar\/sha256:[0-9a-f]{64}$/);
  });
});

/** A decision as a report has it. */
const asked2 = ({ capability, presentation, ...rest }: Record<string, unknown>) => ({
  ...rest,
  capability: JSON.stringify(capability),
  presentation: JSON.stringify(presentation),
});

describe("what Cedar can't evaluate", () => {
  it.each([
    [
      "a missing attribute, where nothing else permits",
      "permit(principal, action, resource) when { context.args.x };",
    ],
    [
      "a missing attribute, where another policy permits",
      `${ALL} forbid(principal, action, resource) when { context.args.x };`,
    ],
    [
      "a missing attribute, where another policy forbids",
      "forbid(principal, action, resource); permit(principal, action, resource) when { context.args.x };",
    ],
    ["a value of another type", 'permit(principal, action, resource) when { context.args.n like "*" };'],
  ])("is a policy failure, recorded allow or deny: %s", (_what, text) => {
    for (const outcome of ["allow", "deny"]) {
      const { only, report } = oneCall('{"n":1}', cedar(text), { outcome });
      expect([only.result, only.rechecked]).toEqual(["different", null]);
      expect(only.detail).toMatch(/^policy failed: policy policy\d has an error: /);
      expect(report.same).toBe(false);
    }
  });

  it.each(["__entity", "__extn", "__expr"])("is an argument that Cedar would take for its own: %s", (key) => {
    const { only } = oneCall(`{"n":{"a":[{"${key}":{"type":"Agent","id":"root"}}]}}`, cedar(ALL));
    expect(only.detail).toBe(
      `policy failed: Cedar can't read the request: it has a member ${key}, which Cedar reads as an escape`,
    );
  });

  it("is an argument that nests too deep, and the next one is evaluated", () => {
    const policy = cedar(ALL);
    const deep = (levels: number) => `{"n":${"[".repeat(levels)}${"]".repeat(levels)}}`;
    expect(oneCall(deep(99), policy).only.result).toBe("same");
    expect(oneCall(deep(100), policy).only.detail).toContain("nests deeper than 100 levels");
    expect(oneCall('{"n":1}', policy).only.result).toBe("same");
  });

  it.each([
    ["a number that is no Long", '{"n":1.5}', 'context.args.n == decimal("1.5")', "numbers"],
    ["a number that Cedar has no decimal for", '{"n":0.12345}', 'context.args.n == "0.12345"', "numbers"],
    ["a null", '{"n":null,"m":1}', "!(context.args has n) && context.args.m == 1", "nulls"],
    [
      "both",
      '{"n":null,"m":9223372036854775808}',
      'context.args.m == "9223372036854775808"',
      "nulls and numbers",
    ],
  ])("is mapped, and noted: %s", (_what, args, condition, what) => {
    const { only, report } = oneCall(
      args,
      cedar(`permit(principal, action, resource) when { ${condition} };`),
    );
    expect([only.result, only.detail]).toEqual(["same", ""]);
    expect(report.notes).toContain(
      `1 evaluation(s) hold ${what} that Cedar has no value for: docs/policies.md says what it was handed`,
    );
    expect(() => JSON.parse(reportJson(report))).not.toThrow();
  });

  it("is mapped, and noted, in the run's limits too", () => {
    const run = new OneCall()
      .created({ limits: raw('{"max_cost":1.5,"max_steps":null}') })
      .step()
      .evaluated();
    run.evaluated();
    const report = recheck(
      run,
      cedar(`permit(principal, action, resource) when { context.run.limits.max_cost == decimal("1.5") };`),
    );
    expect(report.notes).toContain(
      "2 evaluation(s) hold nulls and numbers that Cedar has no value for: docs/policies.md says what it was handed",
    );
    expect(report.same).toBe(true);
  });

  it("is noted of nothing else", () => {
    const { report } = oneCall('{"n":1.0,"s":"null 1.5 -0","x":[true,-9223372036854775808]}', cedar(ALL));
    expect(report.notes.filter((note) => note.includes("Cedar"))).toEqual([]);
    expect(report.same).toBe(true);
  });
});

describe("a Cedar document", () => {
  it.each([
    ['"permit(principal, action, resource"', "", /line 1, column/],
    ['{"policies":"permit(principal, action, resource);\\nwrong"}', "/policies", /line 2, column 6/],
    ['""', "", /no policy/],
    ['{"entities":[]}', "/policies", /needs its policies/],
    ['{"policies":"permit(principal == ?principal, action, resource);"}', "/policies", /template/],
    ['{"policies":1}', "/policies", /not a value/],
    ['{"policies":"","schema":""}', "/schema", /a key/],
    [
      '{"policies":"@outcome(\\"ask\\") permit(principal,action,resource);"}',
      "/policies",
      /@outcome of a permit/,
    ],
    [
      '{"policies":"@outcome(\\"allow\\") forbid(principal,action,resource);"}',
      "/policies",
      /@outcome of a forbid/,
    ],
    ['{"policies":"@kind(\\"x\\") permit(principal,action,resource);"}', "/policies", /@kind/],
    ['{"policies":"permit(principal,action,resource);","action":"A b"}', "/action", /Type/],
    ['{"policies":"permit(principal,action,resource);","args":"run"}', "/args", /name/],
    ['{"policies":"permit(principal,action,resource);","entities":{}}', "/entities", /list/],
    ['{"policies":"permit(principal,action,resource);","entities":[{"uid":1}]}', "/entities", /not entities/],
    ["[]", "", /object/],
  ])("is refused: %s", (json, pointer, message) => {
    expect(() => cedarPolicy(json, engine)).toThrow(
      expect.objectContaining({ code: "policy-invalid", pointer, message: expect.stringMatching(message) }),
    );
  });

  it("that nests too deep for the engine is refused, and leaves the engine whole", () => {
    const before = cedar(ALL);
    const deep = `permit(principal, action, resource) when { ${"(".repeat(5000)}true${")".repeat(5000)} };`;
    expect(() => cedar(deep)).toThrow(
      expect.objectContaining({ code: "policy-invalid", pointer: "/policies" }),
    );
    expect(oneCall('{"n":1}', before).only.result).toBe("same");
  });

  it("is evaluated as itself, however many are open", () => {
    const open = Array.from({ length: 40 }, (_, n) =>
      cedar(`permit(principal, action, resource) when { context.args.n == ${n} };`),
    );
    for (const _round of [0, 1]) {
      const outcomes = open.map((policy, n) =>
        [n, n + 1].map((args) => oneCall(`{"n":${args}}`, policy).only.rechecked?.outcome),
      );
      expect(outcomes).toEqual(open.map(() => ["allow", "deny"]));
    }
  });

  it("with more than ten policies keeps each annotation at its own policy", () => {
    const text = Array.from(
      { length: 13 },
      (_, n) => `@id("p${n}") permit(principal, action, resource) when { context.args.n == ${n} };`,
    ).join("\n");
    for (const n of [0, 1, 2, 10, 12])
      expect(oneCall(`{"n":${n}}`, cedar(text)).only.rechecked?.reason).toBe(`permitted by p${n}`);
  });
});

const allowAll: Policy = policyOf(() => answerOf("allow"));

describeWithShared("AgentCore's policies", "corpus/agentcore", () => {
  const gateway = "<gateway_arn>";
  const names = {
    principal: 'AgentCore::OAuthUser::"u"',
    action: "AgentCore::Action",
    resource: `AgentCore::Gateway::"${gateway}"`,
    args: "input",
  };

  it("deny the tools that they name, and nothing else", () => {
    const text = readShared("corpus/agentcore/securing-coding-agents/tool_restrictions.cedar");
    const tools = ["CodeTarget___python_repl", "HttpTarget___http_request", "read"];
    const policy = cedar(`${text}\npermit(principal, action, resource);`, names);
    const run = new LoopRun(allowAll, {
      tools: new Map(tools.map((tool) => [tool, `{"name":"${tool}","side_effect":""}`])),
    });
    for (const tool of tools) run.call({ tool, args: "{}" });
    expect(lines(recheck(run.complete(), policy))).toEqual([
      "0 CodeTarget___python_repl different allow->deny",
      "1 HttpTarget___http_request different allow->deny",
      "2 read same allow->allow",
    ]);
  });
});
