import { beforeAll, describe, expect, it } from "vitest";
import type { Answer, TestTenant } from "./support.ts";
import { call, entry, newKey, newTenant } from "./support.ts";

let tenant: TestTenant;
const PATH = "/v1/principals/agent/export";
const get = (path: string) => call(tenant.key, "GET", path);
const linesOf = ({ text }: Answer) =>
  text
    .trim()
    .split("\n")
    .map(
      (line) =>
        JSON.parse(line) as { t?: string; seq?: number; fields?: { section: string; name: string }[] },
    );
const verify = async (text: string) =>
  (await call(tenant.key, "POST", `/v1/verify?registry=${tenant.registryId}`, text)).body as unknown as {
    verdict: string;
    not_checked: string[];
    break?: { seq: number; verdict: string };
  };

async function disclosures(): Promise<{ action: Record<string, unknown> }[]> {
  const { body } = await get("/v1/principals/$system/entries?kind=disclosure.made&limit=1000");
  return (body as unknown as { entries: { action: Record<string, unknown> }[] }).entries;
}

beforeAll(async () => {
  tenant = await newTenant("disclosing");
  const stored = await call(tenant.key, "POST", "/v1/principals/agent/entries", [
    { id: "r", kind: "run.created", run: "run-1", action: { goal: "hidden-goal" } },
    entry({ action: { tool: "shown-tool", args: { of: "hidden-args" } } }),
    {
      id: "done",
      kind: "tool.call.completed",
      run: "run-1",
      action: { tool: "shown-tool" },
      outcome: { status: "success", result: "shown-result", error: "hidden-error" },
    },
  ]);
  expect(stored.status).toBe(201);
});

describe("an export with chosen fields", () => {
  it("hands out those alone, and verifies", async () => {
    const bundle = await get(`${PATH}?disclose=action.tool,outcome.result`);
    expect(bundle.status).toBe(200);
    const lines = linesOf(bundle);
    expect(lines.filter(({ t }) => t === "content")).toEqual([]);
    expect(
      lines
        .filter(({ t }) => t === "disclosure")
        .map(({ seq, fields }) => [seq, fields?.map(({ section, name }) => `${section}.${name}`)]),
    ).toEqual([
      [2, ["action.tool"]],
      [3, ["action.tool", "outcome.result"]],
    ]);
    for (const hidden of ["hidden-goal", "hidden-args", "hidden-error"])
      expect(bundle.text).not.toContain(hidden);
    const report = await verify(bundle.text);
    expect(report.verdict).toBe("intact");
    expect(report.not_checked.join("\n")).toContain("3 values of 6: they are committed to, not disclosed");
  });

  it("is found out where a disclosed value was changed, moved, or opened twice", async () => {
    const { text } = await get(`${PATH}?disclose=action.tool,outcome.result`);
    const changed = text.replace("shown-result", "other-result");
    expect((await verify(changed)).break).toMatchObject({ seq: 3, verdict: "altered" });
    const renamed = text.replace('"section":"outcome","name":"result"', '"section":"outcome","name":"error"');
    expect((await verify(renamed)).break).toMatchObject({ seq: 3, verdict: "altered" });
    const lines = text.trim().split("\n");
    const at = lines.findIndex((line) => line.includes('"disclosure"'));
    const twice = [...lines.slice(0, at + 1), ...lines.slice(at)].join("\n");
    expect((await verify(twice)).verdict).toBe("broken");
  });

  it("says nothing of a value that was erased", async () => {
    await call(tenant.key, "POST", "/v1/principals/other/entries", [
      entry({ action: { tool: "kept-tool", args: "gone-args" } }),
    ]);
    await call(tenant.key, "POST", "/v1/principals/other/erasures", {
      seq: 1,
      fields: ["action.args"],
      reason: "asked for",
    });
    const bundle = await get("/v1/principals/other/export?disclose=action.tool,action.args");
    const [line] = linesOf(bundle).filter(({ t }) => t === "disclosure");
    expect(line?.fields?.map(({ name }) => name)).toEqual(["tool"]);
    expect((await verify(bundle.text)).not_checked.join()).toContain("1 values of 2");
  });

  it.each([
    ["disclose=", "?disclose"],
    ["disclose=tool", "?disclose"],
    ["disclose=action.tool,", "?disclose"],
    ["disclose=action.*", "?disclose"],
    ["disclose=result.tool", "?disclose"],
    ["disclose=action.tool&content=true", "?content"],
    ["disclose=action.tool&content=false", "?content"],
    ["recipient=", "?recipient"],
  ])("is refused with ?%s", async (query, pointer) => {
    const before = (await disclosures()).length;
    const { status, body } = await get(`${PATH}?${query}`);
    expect([status, body.type, body.pointer]).toEqual([400, "urn:runseal:problem:invalid-request", pointer]);
    expect((await disclosures()).length).toBe(before);
  });
});

describe("that values were handed out", () => {
  it("is on the system log: by whom, to whom, of which entries and fields", async () => {
    const reader = await newKey(tenant, ["read"]);
    const before = (await disclosures()).length;
    await call(reader, "GET", `${PATH}?from=2&to=3&disclose=outcome.result,action.tool&recipient=auditor`);
    await call(reader, "GET", `${PATH}?to=2`);
    const { body } = await get("/v1/api-keys");
    const { id } = (body as unknown as { api_keys: { id: string }[] }).api_keys.at(-1) ?? {};
    const [chosen, all] = (await disclosures()).slice(before);
    expect(chosen?.action).toEqual({
      log_id: expect.stringMatching(/^[0-9a-f]{64}$/),
      from: 2,
      to: 3,
      fields: ["action.tool", "outcome.result"],
      recipient: "auditor",
      by: id,
    });
    expect(all?.action).toEqual({ log_id: chosen?.action.log_id, from: 1, to: 2, by: id });
  });

  it("is not where none were: without content, of an empty range, of the system log itself", async () => {
    const before = (await disclosures()).length;
    for (const path of [
      `${PATH}?content=false`,
      `${PATH}?from=100`,
      "/v1/principals/$system/export",
      "/v1/principals/nobody/export",
    ]) {
      await get(path);
    }
    expect((await disclosures()).length).toBe(before);
  });
});
