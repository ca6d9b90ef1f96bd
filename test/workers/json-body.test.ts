import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import type { TestTenant } from "./support.ts";
import { call, newTenant } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
  await call(tenant.key, "POST", "/v1/principals", { name: "agent" });
});

const LONE = "\\ud800";

/** A request whose text is the same to every reader, but for one member. */
const bodies: [string, string, string, number, string][] = [
  ["/v1/principals/agent/erasures", `{"seq":1,"reason":"${LONE}"}`, "json-surrogate", 422, "/reason"],
  [
    "/v1/anchors",
    `{"principal":"agent","checkpoint":"x","where":"${LONE}"}`,
    "json-surrogate",
    422,
    "/where",
  ],
  ["/v1/api-keys", `{"name":"${LONE}","scopes":["read"],"principals":["*"]}`, "json-surrogate", 422, "/name"],
  ["/v1/principals", '{"name":"a","name":"b"}', "json-duplicate-key", 422, "/name"],
  ["/v1/principals", `{"name":${"[".repeat(300)}${"]".repeat(300)}}`, "json-depth", 422, ""],
  ["/v1/principals", '{"name":1e999}', "json-number", 422, "/name"],
  ["/v1/principals", "", "json-syntax", 400, ""],
  ["/v1/principals", '\ufeff{"name":"a"}', "json-syntax", 400, ""],
];

describe("a JSON body", () => {
  it.each(bodies)("of POST %s is read strictly: %s", async (path, body, code, status, pointer) => {
    const answer = await call(tenant.key, "POST", path, body);
    expect([answer.status, answer.body.type]).toEqual([status, `urn:runseal:problem:${code}`]);
    expect(String(answer.body.pointer).startsWith(pointer)).toBe(true);
  });

  it("of the operator too", async () => {
    const answer = await call(env.RUNSEAL_OPERATOR_TOKEN, "POST", "/v1/tenants", `{"name":"${LONE}"}`);
    expect([answer.status, answer.body.pointer]).toEqual([422, "/name"]);
  });

  it("has no more scopes than there are", async () => {
    const body = { name: "n", scopes: Array<string>(10).fill("read"), principals: ["*"] };
    const answer = await call(tenant.key, "POST", "/v1/api-keys", body);
    expect([answer.status, answer.body.pointer]).toEqual([400, "/scopes"]);
  });
});
