import { beforeAll, describe, expect, it } from "vitest";
import { PROBLEMS } from "../../shared/api/problems.ts";
import { ProblemDocument } from "../../shared/api/schemas.ts";
import { toHex } from "../../shared/bytes.ts";
import { routes } from "../../workers/routes/index.ts";
import { listed, serviceListed } from "./heads-support.ts";
import { addKey, newSigner, newTenantWithRecovery, recoverKey } from "./registry-support.ts";
import type { Answer, TestTenant } from "./support.ts";
import { call, entries, entry, newTenant } from "./support.ts";

let tenant: TestTenant;
let keyId: string;

beforeAll(async () => {
  tenant = await newTenant();
  await call(tenant.key, "POST", "/v1/principals/agent/entries", [
    { id: "c", kind: "run.created", run: "r1", action: { goal: "g" } },
    ...entries(3),
  ]);
  const created = await call(tenant.key, "POST", "/v1/api-keys", {
    name: "k",
    scopes: ["read"],
    principals: ["*"],
  });
  keyId = String(created.body.id);
});

const POLICY = { rules: { side_effects: { read_only: "allow" } } };
const EXTENSION = { kinds: { "refund.made": { action: { type: "object" } } } };
const SPEC = '{"name":"read_file","side_effect":"read_only"}';
const SPEC_HASH = async (): Promise<string> => {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(SPEC));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
};

/** A re-check job that is at its end. */
const recheck = (): Promise<Answer> =>
  call(tenant.key, "POST", "/v1/rechecks?wait=30", {
    policy: { rules: { side_effects: {} } },
    selection: {},
  });

/** A call of the operator's. */
async function operate(method: string, path: string, body?: unknown): Promise<Answer> {
  const { env } = await import("cloudflare:workers");
  return call(env.RUNSEAL_OPERATOR_TOKEN, method, path, body);
}

/** The path of a log whose heads answer without a key. */
async function publicLog(): Promise<string> {
  await call(tenant.key, "PUT", "/v1/public-heads", { enabled: true });
  await listed(tenant);
  const { text } = await call(tenant.key, "GET", "/v1/principals/agent/checkpoint");
  return (text.split("\n")[0] ?? "").replace(/^[^/]+/, "");
}

/** One good request for each operation: a new operation without one here fails the test below. */
const REQUESTS: Readonly<Record<string, () => Promise<Answer>>> = {
  createTenant: async () => {
    const { env } = await import("cloudflare:workers");
    return call(env.RUNSEAL_OPERATOR_TOKEN, "POST", "/v1/tenants", { name: "t" });
  },
  listApiKeys: () => call(tenant.key, "GET", "/v1/api-keys"),
  createApiKey: () =>
    call(tenant.key, "POST", "/v1/api-keys", { name: "n", scopes: ["read"], principals: ["agent"] }),
  revokeApiKey: () => call(tenant.key, "DELETE", `/v1/api-keys/${keyId}`),
  putTenantLimits: async () => {
    const { env } = await import("cloudflare:workers");
    const limits = { entries_per_minute: 1_000_000 };
    return call(env.RUNSEAL_OPERATOR_TOKEN, "PUT", `/v1/tenants/${(await newTenant()).id}/limits`, limits);
  },
  getTenantLimits: async () => {
    const { env } = await import("cloudflare:workers");
    return call(env.RUNSEAL_OPERATOR_TOKEN, "GET", `/v1/tenants/${tenant.id}/limits`);
  },
  getLimits: () => call(tenant.key, "GET", "/v1/limits"),
  createPrincipal: () => call(tenant.key, "POST", "/v1/principals", { name: "other" }),
  listPrincipals: () => call(tenant.key, "GET", "/v1/principals"),
  appendEntries: () => call(tenant.key, "POST", "/v1/principals/agent/entries?proof=true", entry()),
  admit: () =>
    call(tenant.key, "POST", "/v1/principals/agent/admit", {
      kind: "host.admitted",
      action: { call: { class: "file_write", path: "/tmp/x" } },
    }),
  listEntries: () => call(tenant.key, "GET", "/v1/principals/agent/entries"),
  listTenantEntries: () => call(tenant.key, "GET", "/v1/entries"),
  getEntry: () => call(tenant.key, "GET", "/v1/principals/agent/entries/1?proof=true"),
  getHead: () => call(tenant.key, "GET", "/v1/principals/agent/head"),
  getCheckpoint: () => call(tenant.key, "GET", "/v1/principals/agent/checkpoint"),
  getTile: () => call(tenant.key, "GET", "/v1/principals/agent/tile/0/000.p/1"),
  getInclusionProof: () => call(tenant.key, "GET", "/v1/principals/agent/proof/inclusion?seq=2"),
  getConsistencyProof: () => call(tenant.key, "GET", "/v1/principals/agent/proof/consistency?from=2"),
  listHeads: () => call(tenant.key, "GET", "/v1/heads"),
  getLogCheckpoint: () => call(tenant.key, "GET", "/v1/log/checkpoint"),
  getLogTile: async () => {
    await listed(tenant);
    return call(tenant.key, "GET", "/v1/log/tile/0/000.p/1");
  },
  listLogLeaves: () => call(tenant.key, "GET", "/v1/log/entries"),
  getLogInclusionProof: async () => {
    await listed(tenant);
    return call(tenant.key, "GET", "/v1/log/proof/inclusion?index=0");
  },
  getLogConsistencyProof: () => call(tenant.key, "GET", "/v1/log/proof/consistency?from=0"),
  getServiceProof: async () => {
    await serviceListed(tenant);
    return call(tenant.key, "GET", "/v1/log/service-proof");
  },
  postAnchor: async () => {
    const { text } = await call(tenant.key, "GET", "/v1/principals/agent/checkpoint");
    const body = { principal: "agent", checkpoint: text, where: "a test", receipt: "none" };
    return call(tenant.key, "POST", "/v1/anchors", body);
  },
  listAnchors: () => call(tenant.key, "GET", "/v1/anchors"),
  getPublicHeads: () => call(tenant.key, "GET", "/v1/public-heads"),
  putPublicHeads: () => call(tenant.key, "PUT", "/v1/public-heads", { enabled: true }),
  getPublicCheckpoint: async () => call(null, "GET", `${await publicLog()}/checkpoint`),
  getPublicTile: async () => call(null, "GET", `${await publicLog()}/tile/0/000.p/1`),
  getPublicTenantCheckpoint: async () => {
    await publicLog();
    return call(null, "GET", `/t/${tenant.id}/checkpoint`);
  },
  getPublicTenantTile: async () => {
    await publicLog();
    return call(null, "GET", `/t/${tenant.id}/tile/0/000.p/1`);
  },
  getServiceCheckpoint: () => call(null, "GET", "/log/checkpoint"),
  getServiceKey: () => call(null, "GET", "/log/key"),
  getServiceTile: async () => {
    await serviceListed(tenant);
    return call(null, "GET", "/log/tile/0/000.p/1");
  },
  listWitnesses: async () => {
    const { env } = await import("cloudflare:workers");
    return call(env.RUNSEAL_OPERATOR_TOKEN, "GET", "/v1/witnesses");
  },
  putWitnessedLog: async () => {
    const { env } = await import("cloudflare:workers");
    const vkeys = [(await call(null, "GET", "/log/key")).text.trim()];
    return call(env.RUNSEAL_OPERATOR_TOKEN, "PUT", "/v1/witnessed-logs", { origin: env.LOG_HOST, vkeys });
  },
  listWitnessedLogs: async () => {
    const { env } = await import("cloudflare:workers");
    return call(env.RUNSEAL_OPERATOR_TOKEN, "GET", "/v1/witnessed-logs");
  },
  getWitnessKey: () => call(null, "GET", "/witness/key"),
  addCheckpoint: async () => {
    const { text } = await call(null, "GET", "/log/checkpoint");
    return call(null, "POST", "/add-checkpoint", `old 0\n\n${text}`);
  },
  getRegistry: () => call(tenant.key, "GET", "/v1/registry"),
  proposeRecord: () =>
    call(tenant.key, "POST", "/v1/registry/proposals", {
      op: "add",
      role: "client",
      key: toHex(newSigner().publicKey),
    }),
  addKey: async () => (await addKey(tenant)).answer,
  retireKey: async () => call(tenant.key, "DELETE", `/v1/registry/keys/${(await addKey(tenant)).key}`),
  rotateKey: () => call(tenant.key, "POST", "/v1/registry/rotations", { role: "log" }),
  recoverKey: async () => {
    const { recovery, tenant: recoverable } = await newTenantWithRecovery();
    return recoverKey(recoverable, recovery);
  },
  verifyLog: () => call(tenant.key, "GET", "/v1/principals/agent/verify"),
  verifyBundle: async () => {
    const bundle = await call(tenant.key, "GET", "/v1/principals/agent/export");
    return call(tenant.key, "POST", "/v1/verify", bundle.text);
  },
  eraseContent: () =>
    call(tenant.key, "POST", "/v1/principals/agent/erasures", { seq: 1, reason: "asked for" }),
  exportLog: () => call(tenant.key, "GET", "/v1/principals/agent/export"),
  listRuns: () => call(tenant.key, "GET", "/v1/principals/agent/runs"),
  getRun: () => call(tenant.key, "GET", "/v1/principals/agent/runs/r1"),
  recheckRun: () =>
    call(tenant.key, "POST", "/v1/principals/agent/runs/r1/recheck", {
      policy: { rules: { side_effects: {} } },
    }),
  auditRun: () => call(tenant.key, "GET", "/v1/principals/agent/runs/r1/audit"),
  auditSelection: () => call(tenant.key, "POST", "/v1/audits", {}),
  listEvaluations: () => call(tenant.key, "GET", "/v1/principals/agent/runs/r1/evaluations"),
  putPolicy: () => call(tenant.key, "PUT", "/v1/policies/p1", POLICY),
  listPolicies: () => call(tenant.key, "GET", "/v1/policies"),
  getPolicy: async () => {
    await call(tenant.key, "PUT", "/v1/policies/p2", POLICY);
    return call(tenant.key, "GET", "/v1/policies/p2");
  },
  listPolicyVersions: async () => {
    await call(tenant.key, "PUT", "/v1/policies/p3", POLICY);
    return call(tenant.key, "GET", "/v1/policies/p3/versions");
  },
  diffPolicy: async () => {
    await call(tenant.key, "PUT", "/v1/policies/p4", POLICY);
    return call(tenant.key, "GET", "/v1/policies/p4/diff?from=1");
  },
  putExtension: () => call(tenant.key, "PUT", "/v1/extensions/one", EXTENSION),
  listExtensions: async () => {
    await call(tenant.key, "PUT", "/v1/extensions/two", EXTENSION);
    return call(tenant.key, "GET", "/v1/extensions");
  },
  getExtension: async () => {
    await call(tenant.key, "PUT", "/v1/extensions/three", EXTENSION);
    return call(tenant.key, "GET", "/v1/extensions/three");
  },
  createRecheck: () => recheck(),
  listRechecks: async () => {
    await recheck();
    return call(tenant.key, "GET", "/v1/rechecks");
  },
  getRecheck: async () => call(tenant.key, "GET", `/v1/rechecks/${(await recheck()).body.id}`),
  cancelRecheck: async () => call(tenant.key, "POST", `/v1/rechecks/${(await recheck()).body.id}/cancel`),
  getRecheckReport: async () => call(tenant.key, "GET", `/v1/rechecks/${(await recheck()).body.id}/report`),
  listRecheckRuns: async () =>
    call(tenant.key, "GET", `/v1/rechecks/${(await recheck()).body.id}/runs?all=true`),
  putTool: async () => call(tenant.key, "PUT", `/v1/tools/${await SPEC_HASH()}`, SPEC),
  getTool: async () => {
    await call(tenant.key, "PUT", `/v1/tools/${await SPEC_HASH()}`, SPEC);
    return call(tenant.key, "GET", `/v1/tools/${await SPEC_HASH()}`);
  },
  inspectLog: () => operate("GET", `/v1/tenants/${tenant.id}/principals/agent/log`),
  recoverLog: async () => {
    const { recoverStopped } = await import("../durable-objects/stopped-log.ts");
    return recoverStopped(tenant, "stopped");
  },
  rebuildIndex: () => operate("POST", "/v1/admin/rebuild-index", { tenant: tenant.id }),
  reindexLog: () => operate("POST", `/v1/tenants/${tenant.id}/principals/agent/reindex`),
  getOpenApi: () => call(null, "GET", "/openapi.json"),
  docs: () => call(null, "GET", "/docs"),
  getPrincipalHealth: () => call(tenant.key, "GET", "/v1/principals/agent/health"),
  getTenantHealth: () => call(tenant.key, "GET", "/v1/health"),
  getMetrics: async () => {
    const { env } = await import("cloudflare:workers");
    return call(env.RUNSEAL_OPERATOR_TOKEN, "GET", "/metrics");
  },
  healthz: () => call(null, "GET", "/healthz"),
  readyz: () => call(null, "GET", "/readyz"),
};

describe("the contract", () => {
  it.each(routes.map((route) => [route.operation, route] as const))(
    "%s answers as it declares",
    async (operation, route) => {
      const request = REQUESTS[operation];
      expect(request, `a request for ${operation}`).toBeDefined();
      const answer = (await request?.()) as Answer;
      const declared = route.answers[answer.status];
      expect(declared, `${answer.status}: ${answer.text.slice(0, 300)}`).toBeDefined();
      const type = declared?.contentType ?? "application/json";
      expect(answer.headers.get("content-type")).toContain(type);
      if (declared?.schema !== undefined) {
        const parsed = declared.schema.safeParse(answer.body);
        expect(parsed.error?.issues ?? []).toEqual([]);
      }
      expect(answer.headers.get("x-request-id")).toBeTruthy();
    },
  );

  it("is published as OpenAPI 3.1, every route with its parameters", async () => {
    const { body } = await call(null, "GET", "/openapi.json");
    expect(body.openapi).toBe("3.1.0");
    const paths = body.paths as unknown as Record<
      string,
      Record<string, { operationId: string; parameters: { name: string }[] }>
    >;
    const operations = Object.values(paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    );
    expect(operations.sort()).toEqual(routes.map(({ operation }) => operation).sort());
    for (const [path, methods] of Object.entries(paths)) {
      for (const name of [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1])) {
        for (const { parameters } of Object.values(methods)) {
          expect(parameters.map((parameter) => parameter.name)).toContain(name);
        }
      }
    }
    expect(
      Object.keys((body.components as unknown as { schemas: Record<string, unknown> }).schemas),
    ).toContain("Kind.policy.evaluated");
  });

  it("errors are problem documents of a listed type", async () => {
    const answers = [
      await call(null, "GET", "/nowhere"),
      await call(null, "DELETE", "/healthz"),
      await call(null, "GET", "/v1/entries"),
      await call(tenant.key, "GET", "/v1/principals/nobody/head"),
      await call(tenant.key, "GET", "/v1/entries?limit=0"),
      await call(tenant.key, "POST", "/v1/principals", "{"),
    ];
    expect(answers.map(({ status }) => status)).toEqual([404, 405, 401, 404, 400, 400]);
    for (const answer of answers) {
      expect(answer.headers.get("content-type")).toBe("application/problem+json");
      expect(ProblemDocument.safeParse(answer.body).success).toBe(true);
      expect(answer.headers.get("x-request-id")).toBe(answer.body.request_id);
      expect(Object.keys(PROBLEMS)).toContain(String(answer.body.type).replace("urn:runseal:problem:", ""));
    }
  });
});
