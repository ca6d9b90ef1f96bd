/**
 * Kinds of a tenant's own through the command and the embedded server, before and after it was killed.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runseal } from "../../support/command.ts";
import { startServerProcess, type TestServer, temporaryFolder } from "../../support/server.ts";

const DECLARATION = `{"kinds": {"refund.made": {"action": {
  "type": "object", "properties": {"cents": {"type": "integer", "minimum": 1.0}},
  "required": ["cents"], "additionalProperties": false}}}}`;

it("a declaration holds for what is sent by the command, and outlives a server that was killed", async () => {
  const folder = temporaryFolder();
  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  let server: TestServer = await startServerProcess();
  const created = await server.client(server.operatorToken).post("/v1/tenants", { name: "t" });
  const { api_key: key } = created.json<{ api_key: string }>();
  const run = (...args: string[]) => runseal(args, { RUNSEAL_URL: server.url, RUNSEAL_API_KEY: key });

  const typo = DECLARATION.replace("minimum", "minimun");
  const refused = await run("extensions", "put", file("typo.json", typo), "--prefix", "acme");
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining("/kinds/refund.made/action/properties/cents/minimun"),
  ]);
  const put = await run("extensions", "put", file("acme.json", DECLARATION), "--prefix", "acme");
  expect([put.code, put.stderr]).toEqual([0, expect.stringContaining("a new version")]);
  expect((await run("extensions")).stdout).toMatch(
    /^acme@1 {2}[0-9a-f]{64} {2}\S+\n {2}ext\.acme\.refund\.made\n$/,
  );

  const entry = (cents: unknown) => ({ kind: "ext.acme.refund.made", run: "r", action: { cents } });
  const append = (body: unknown) => server.client(key).post("/v1/principals/agent/entries", body);
  const both = async () => [(await append(entry(5))).status, (await append(entry(0))).status];
  expect(await both()).toEqual([201, 422]);
  await server.killTree();
  server = await server.restart();
  expect(await both()).toEqual([201, 422]);
  const listed = await server.client(key).get("/v1/principals/$system/entries?kind=extension.declared");
  expect(listed.json<{ entries: { action: unknown }[] }>().entries.map(({ action }) => action)).toMatchObject(
    [{ prefix: "acme", version: 1 }],
  );
  expect((await run("verify", "--principal", "agent")).code).toBe(0);
});
