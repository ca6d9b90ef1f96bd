/**
 * Policies through the command and the embedded server: stored ones, Cedar's wasm in the built Worker, a policy of one's
 * own over exported evaluations, and modules in a process that can be killed.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { runseal } from "../../support/command.ts";
import { startServerProcess, type TestServer, temporaryFolder } from "../../support/server.ts";

let server: TestServer;
let env: Record<string, string>;
const folder = temporaryFolder();

const SPEC = '{"name":"read","side_effect":"read_only"}';
const SPEC_HASH = "15251a19bff7c994857fe7746ad9f680f35c64a29b8c643c249182ad17334e84";
const RUN = ["--principal", "agent", "--run", "r1"];
const RULES = '{"policy_id":"recorded/v1","side_effects":{"read_only":"allow"}}';
const CEDAR = "permit(principal, action, resource) when { context.args.n < 3 };";

function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** Three reads, allowed. */
function entries(): unknown[] {
  const view = {
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
  };
  const evaluated = [1, 2, 3].map((n) => ({
    id: `p${n}`,
    kind: "policy.evaluated",
    run: "r1",
    step: `s${n}`,
    action: {
      tool: "read",
      args: { n },
      spec_hash: SPEC_HASH,
      policy_id: "recorded/v1",
      decision: { outcome: "allow" },
      view,
    },
  }));
  const created = { id: "c", kind: "run.created", run: "r1", action: { goal: "g", limits: {}, tools: [] } };
  return [created, ...evaluated, { id: "e", kind: "run.completed", run: "r1", action: {} }];
}

beforeAll(async () => {
  server = await startServerProcess();
  const created = await server.client(server.operatorToken).post("/v1/tenants", { name: "t" });
  const { api_key: key } = created.json<{ api_key: string }>();
  env = { RUNSEAL_URL: server.url, RUNSEAL_API_KEY: key };
  const client = server.client(key);
  expect((await client.send("PUT", `/v1/tools/${SPEC_HASH}`, { body: SPEC })).status).toBe(200);
  expect((await client.post("/v1/principals/agent/entries", entries())).status).toBe(201);
});

describe("policies", () => {
  it("are stored, listed, read, compared, and used by name", async () => {
    const rules = file("rules.json", RULES);
    const cedar = file("policy.cedar", CEDAR);
    expect(await runseal(["policy", "put", "team", "--policy", rules], env)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^team@1 {2}rules {2}recorded\/v1 /),
      stderr: "stored as a new version\n",
    });
    expect((await runseal(["policy", "put", "team", "--policy", rules], env)).stderr).toContain("already");
    const put = await runseal(["policy", "put", "team", "--policy", cedar, "--policy-id", "team/v2"], env);
    expect(put.stdout).toMatch(/^team@2 {2}cedar {2}team\/v2 /);
    expect((await runseal(["policy", "list"], env)).stdout).toMatch(/^team@2 .*\n$/);
    expect((await runseal(["policy", "versions", "team"], env)).stdout.split("\n")).toHaveLength(3);
    expect(await runseal(["policy", "get", "team", "--version", "1"], env)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`"policy":{"rules":${RULES}}`),
    });
    expect((await runseal(["policy", "diff", "team", "--from", "1"], env)).code).toBe(1);
    expect((await runseal(["policy", "diff", "team", "--from", "1", "--to", "1"], env)).code).toBe(0);
    expect(await runseal(["recheck", ...RUN, "--stored", "team@1"], env)).toMatchObject({ code: 0 });
    const latest = await runseal(["recheck", ...RUN, "--stored", "team"], env);
    expect([latest.code, latest.stdout]).toEqual([
      1,
      expect.stringContaining("1 of 3 re-checked evaluations differ"),
    ]);
  });

  it("in Cedar run in the built Worker, and name the call that they deny", async () => {
    const policy = file("inline.cedar", CEDAR);
    const { code, stdout } = await runseal(["recheck", ...RUN, "--policy", policy, "--json"], env);
    const report = JSON.parse(stdout) as {
      evaluations: { result: string; rechecked: { outcome: string } }[];
    };
    expect(code).toBe(1);
    expect(report.evaluations.map(({ result, rechecked }) => [result, rechecked.outcome])).toEqual([
      ["same", "allow"],
      ["same", "allow"],
      ["different", "deny"],
    ]);
  });

  it("of one's own run over the exported evaluations", async () => {
    const exported = await runseal(["evaluations", ...RUN], env);
    expect(exported.code).toBe(0);
    const lines = exported.stdout.trim().split("\n");
    const decide = (limit: number) =>
      lines.map((line) => {
        const { seq, hash, request } = JSON.parse(line) as {
          seq: number;
          hash: string;
          request: { args: { n: number } };
        };
        return JSON.stringify({
          seq,
          hash,
          decision: { outcome: request.args.n < limit ? "allow" : "deny" },
        });
      });
    const same = file("same.ndjson", decide(9).join("\n"));
    const named = await runseal(["recheck", ...RUN, "--decisions", same, "--policy-id", "recorded/v1"], env);
    expect([named.code, named.stdout]).toEqual([0, expect.stringContaining("policy unchanged")]);
    const strict = file("strict.json", `[${decide(2).join(",")}]`);
    expect((await runseal(["recheck", ...RUN, "--decisions", strict], env)).code).toBe(1);
    const some = file("some.ndjson", decide(9).slice(1).join("\n"));
    expect((await runseal(["recheck", ...RUN, "--decisions", some, "--gate", "strict"], env)).code).toBe(1);
  });

  it("are named one at a time", async () => {
    expect((await runseal(["recheck", ...RUN], env)).code).toBe(2);
    const rules = file("rules.json", RULES);
    expect((await runseal(["recheck", ...RUN, "--stored", "team", "--policy", rules], env)).code).toBe(2);
    expect((await runseal(["recheck", ...RUN, "--stored", "team", "--policy-id", "x"], env)).code).toBe(2);
    expect((await runseal(["recheck", ...RUN, "--stored", "nobodys"], env)).code).toBe(2);
  });

  it("in JavaScript decide, and are told when they answer differently", async () => {
    const recheck = (name: string, source: string) =>
      runseal(["recheck", ...RUN, "--policy", file(name, source)], env);
    const allow = 'export const decide = ({ args }) => ({ outcome: args.n < 9 ? "allow" : "deny" });';
    expect(await recheck("allow.mjs", allow)).toMatchObject({ code: 0 });
    const deny = await recheck("deny.mjs", allow.replace("9", "3"));
    expect([deny.code, deny.stdout]).toEqual([
      1,
      expect.stringContaining("1 of 3 re-checked evaluations differ"),
    ]);
    const moody = await recheck(
      "moody.mjs",
      "let n = 0; export const decide = () => ({ outcome: 'allow', reason: String(n++) });",
    );
    expect([moody.code, moody.stdout]).toEqual([1, expect.stringContaining("not deterministic")]);
    const bad = await runseal(
      ["policy", "put", "bad", "--policy", file("bad.mjs", "export const x = 1;")],
      env,
    );
    expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining("no function decide")]);
  });

  it("in JavaScript that loop fail, and stop nothing else", async () => {
    const client = server.client(env.RUNSEAL_API_KEY);
    let answered = false;
    const path = "/v1/principals/agent/runs/r1/recheck";
    const loop = client.post(path, { policy: { module: "export function decide() { for (;;); }" } });
    const looped = loop.finally(() => {
      answered = true;
    });
    // While it loops, entries are taken: more than could be without a server that works on.
    let taken = 0;
    while (!answered) {
      const entry = { id: `l${taken}`, kind: "tool.call.started", action: { tool: "t", args: {} } };
      expect((await client.post("/v1/principals/other/entries", entry)).status).toBe(201);
      taken++;
    }
    const report = (await looped).json<{ evaluations: { result: string; detail: string }[] }>();
    expect(report.evaluations.map(({ result, detail }) => [result, detail])).toEqual(
      Array.from({ length: 3 }, () => [
        "different",
        "policy failed: it went beyond its budget of time or memory",
      ]),
    );
    expect(taken).toBeGreaterThan(5);
    const after = { policy: { module: 'export const decide = () => ({ outcome: "allow" });' } };
    expect((await client.post(path, after)).json()).toMatchObject({ same: true, rechecked: 3 });
  });

  it("in JavaScript end with the server", async () => {
    expect(server.workerd().length).toBe(2);
    await server.stop();
    expect(server.workerd()).toEqual([]);
  });
});
