import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import type { Policy, PolicyAnswer } from "../../shared/recheck/policy.ts";
import { PolicyRequest } from "../../shared/recheck/policy.ts";
import { decodeSpec } from "../../shared/recheck/spec.ts";
import type { PolicyView } from "../../shared/recheck/view.ts";
import { openPolicy } from "../../workers/policies/engine.ts";
import type { TestTenant } from "./support.ts";
import { call, newTenant } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
});

const VIEW: PolicyView = {
  run: {
    id: "r1",
    goal: "g",
    limits: '{"max_steps":3}',
    createdAt: 1_000_000_000n,
    recorded: {
      status: "RUNNING",
      step_count: 1,
      model_calls: 0,
      input_tokens: 0,
      output_tokens: 0,
      cached_input_tokens: 0,
      estimated_cost_micros: 0,
      active_ms: 0,
      steps: 0,
      approvals: 0,
    },
  },
  steps: null,
  approvals: null,
};

async function open(source: string, tenantId = tenant.id): Promise<Policy> {
  const document = {
    engine: "module",
    source: JSON.stringify(source),
    policyId: null,
    pointer: "/policy/module",
  } as const;
  return (await openPolicy(env, tenantId, { kind: "inline", document })).policy;
}

async function ask(policy: Policy, args = '{"n":1}'): Promise<PolicyAnswer> {
  const spec = decodeSpec('{"name":"read","side_effect":"read_only"}');
  if (!spec.ok) throw new Error(spec.why);
  return policy.decide(new PolicyRequest("r1", "s1", "read", spec.value, args), VIEW);
}

/** The reason that a module gives for its denial: what it saw. */
async function seen(expression: string): Promise<string> {
  const policy = await open(
    `export async function decide(request, run) {
       let what;
       try { what = await (${expression}); } catch (error) { what = "threw " + error.name; }
       return { outcome: "deny", reason: String(what) };
     }`,
  );
  const answer = await ask(policy);
  return answer.ok ? answer.decision.reason : answer.error;
}

describe("a module", () => {
  it("decides from the request and the run", async () => {
    const policy = await open(`export function decide(request, run) {
      return request.args.n === 1 && request.spec.side_effect === "read_only" && run.run.goal === "g" && run.steps === null
        ? { outcome: "require_approval", kind: "k", capability: { n: request.args.n }, presentation: { q: "?" } }
        : { outcome: "deny" };
    }`);
    expect(policy.id).toMatch(/^runseal-module\/sha256:[0-9a-f]{64}$/);
    expect(await ask(policy)).toEqual({
      ok: true,
      decision: {
        outcome: "require_approval",
        reason: "",
        kind: "k",
        capability: '{"n":1}',
        presentation: '{"q":"?"}',
      },
    });
    expect(await ask(policy, '{"n":2}')).toMatchObject({ ok: true, decision: { outcome: "deny" } });
  });

  it("is handed a number that a double can't hold as its text", async () => {
    const policy = await open(
      `export const decide = ({ args }) => ({ outcome: "deny", reason: typeof args.n + " " + args.n });`,
    );
    expect(await ask(policy, '{"n":12345678901234567890}')).toMatchObject({
      decision: { reason: "string 12345678901234567890" },
    });
  });

  it.each([
    [
      "is told nothing of the time",
      "Date.now() + ' ' + new Date().getTime() + ' ' + new Intl.DateTimeFormat('en', { timeZone: 'UTC' }).format()",
      "946684800000 946684800000 1/1/2000",
    ],
    ["has the same randomness each time", "Math.random() !== Math.random() && Math.random() < 1", "true"],
    ["has no network", "typeof fetch + typeof WebSocket + typeof caches", "undefinedundefinedundefined"],
    [
      "opens no socket",
      "import('cloudflare:sockets').then(({ connect }) => connect('127.0.0.1:1').opened)",
      "threw Error",
    ],
    [
      "has no clock and no timers besides",
      "typeof performance + typeof setTimeout + typeof scheduler",
      "undefinedundefinedundefined",
    ],
    ["has no randomness besides", "typeof crypto", "undefined"],
    ["makes no code of text", "new Function('return 1')()", "threw EvalError"],
    ["has no environment", "import('cloudflare:workers').then(({ env }) => JSON.stringify(env))", "{}"],
    ["has no node modules", "import('node:crypto').then(() => 'there')", "threw Error"],
  ])("%s", async (_what, expression, expected) => {
    expect(await seen(expression)).toBe(expected);
  });

  it.each([
    [
      "answers differently",
      "let n = 0; export const decide = () => ({ outcome: n++ % 2 ? 'allow' : 'deny' });",
      /not deterministic/,
    ],
    [
      "gives another reason each time",
      "let n = 0; export const decide = () => ({ outcome: 'deny', reason: String(n++) });",
      /not deterministic/,
    ],
    ["throws", "export function decide() { throw new Error('no'); }", /^it threw: no$/],
    ["returns nothing", "export function decide() {}", /no decision/],
    [
      "returns an unknown outcome",
      "export const decide = () => ({ outcome: 'maybe' });",
      /its decision is none/,
    ],
    [
      "returns more than a decision has",
      "export const decide = () => ({ outcome: 'deny', extra: 1 });",
      /its decision is none/,
    ],
    [
      "returns too much",
      "export const decide = () => ({ outcome: 'deny', reason: 'x'.repeat(70000) });",
      /too long/,
    ],
    ["never answers", "export const decide = () => new Promise(() => {});", /budget/],
  ])("that %s has failed", async (_what, source, error) => {
    expect(await ask(await open(source))).toEqual({ ok: false, error: expect.stringMatching(error) });
  });

  it("keeps nothing from one job to the next, and nothing between tenants", async () => {
    const counter = `let asked = 0; export const decide = () => ({ outcome: "deny", reason: String(Math.floor(asked++ / 2)) });`;
    const one = await open(counter);
    expect([await ask(one), await ask(one)]).toMatchObject([
      { decision: { reason: "0" } },
      { decision: { reason: "1" } },
    ]);
    for (const again of [await open(counter), await open(counter, "ab".repeat(16))])
      expect(await ask(again)).toMatchObject({ decision: { reason: "0" } });
  });

  it.each([
    ["", "/policy/module"],
    ["export const decide = 1;", "/policy/module"],
    ["export function other() {}", "/policy/module"],
    ["export function decide( {", "/policy/module"],
    ["import './gone.js'; export function decide() {}", "/policy/module"],
    ["throw new Error(); export function decide() {}", "/policy/module"],
  ])("that can't be used is refused: %s", async (source, pointer) => {
    await expect(open(source)).rejects.toMatchObject({ code: "invalid-policy", options: { pointer } });
  });

  it("is not asked about a view that is larger than it is handed", async () => {
    const policy = await open("export const decide = () => ({ outcome: 'deny' });");
    const answer = await ask(policy, JSON.stringify({ n: "x".repeat(9 * 1024 * 1024) }));
    expect(answer).toEqual({ ok: false, unanswered: true, error: expect.stringMatching(/larger than/) });
  });

  it("is stored as any policy, and refused where the runtime has no sandboxes", async () => {
    const body = { module: "export const decide = () => ({ outcome: 'deny' });" };
    const stored = await call(tenant.key, "PUT", "/v1/policies/module", body);
    expect([stored.status, stored.body.engine]).toEqual([201, "module"]);
    const document = {
      engine: "module",
      source: JSON.stringify(body.module),
      policyId: null,
      pointer: "",
    } as const;
    const { MODULES: _none, ...without } = env;
    await expect(openPolicy(without, tenant.id, { kind: "inline", document })).rejects.toMatchObject({
      code: "engine-disabled",
    });
  });
});
