import { env } from "cloudflare:workers";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { TenantDirectory } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import { MIRROR_PACE } from "../../durable-objects/tile-store/mirror-keeper.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { BundleVerifier } from "../../shared/verify/bundle.ts";
import { refusal } from "../../workers/logs/open-log.ts";
import type { Answer, TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import { copyLog } from "./log-copy.ts";
import { stopLog } from "./stopped-log.ts";
import { entries, entry, frameOf, newTenant, problemOf, resultsOf, TestLog } from "./support.ts";

let tenant: TestTenant;
beforeAll(() => {
  MIRROR_PACE.minPutInterval = 20;
});
beforeEach(async () => {
  tenant = await newTenant();
});
afterEach(() => {
  vi.restoreAllMocks();
});

type Row = Record<string, unknown>;

const operator = (method: string, path: string, body?: unknown): Promise<Answer> =>
  call(env.RUNSEAL_OPERATOR_TOKEN, method, path, body);
const pathOf = (name: string): string => `/v1/tenants/${tenant.id}/principals/${name}`;
const inspect = (name: string, query = ""): Promise<Answer> => operator("GET", `${pathOf(name)}/log${query}`);
const recover = (name: string, generation = 1, reason = "restored from a backup"): Promise<Answer> =>
  operator("POST", `${pathOf(name)}/recover`, { generation, reason });

async function rowsOf(name: string): Promise<(Row & { id: string; kind: string; action: Row })[]> {
  const { body } = await call(tenant.key, "GET", `/v1/principals/${name}/entries?limit=1000`);
  return body.entries as never;
}

const stoppedLog = (name: string): Promise<TestLog> => stopLog(tenant, name);

function verdictOf(bundle: string): string {
  const verifier = new BundleVerifier(nativeCrypto, { registryId: tenant.registryId, verifiedBy: "test" });
  for (const line of bundle.split("\n")) verifier.line(line);
  return verifier.finish().verdict;
}

describe("a stopped log", () => {
  it("shows its operator why, and both heads", async () => {
    await stoppedLog("shown");
    const { status, body } = await inspect("shown");
    expect(status).toBe(200);
    expect(body).toMatchObject({
      state: "stopped",
      generation: 1,
      head: null,
      stop: { kind: "fork", stored_head: { size: 3 }, mirrored_head: { size: 3, root: "07".repeat(32) } },
      seal: null,
    });
  });

  it("goes on as its next generation, which begins with both heads, and whose clients change nothing", async () => {
    const log = await stoppedLog("goes-on");
    const sent = [...log.told.receipts.values()];
    const answer = await recover("goes-on");
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      sealed: { generation: 1, seal: { reason: "restored from a backup" } },
      current: { generation: 2, first: { seq: 1 } },
    });
    const after = entry();
    expect((await call(tenant.key, "POST", `${log.path}/entries`, after)).status).toBe(201);
    const [first, second] = await rowsOf("goes-on");
    const sealed = (answer.body.sealed as unknown as { log_id: string; stop: Row }).stop;
    expect(first).toMatchObject({
      seq: 1,
      kind: "log.recovered",
      action: {
        previous_log_id: (answer.body.sealed as unknown as Row).log_id,
        reason: "restored from a backup",
        stored_head: { size: 3, checkpoint: (sealed.stored_head as Row).checkpoint },
        mirrored_head: { size: 3, root: "07".repeat(32) },
      },
    });
    expect(second?.id).toBe(after.id);
    // An id of the old generation is a new one in the next.
    const again = await call(tenant.key, "POST", `${log.path}/entries`, entry({ id: sent[0]?.id }));
    expect([again.status, resultsOf(again)[0]?.seq]).toEqual([201, 3]);
    const fresh = new TestLog(tenant, "goes-on");
    expect(await fresh.check()).toMatchObject({ size: 3 });
    // The one of the stop comes by the old generation's alarm.
    await vi.waitFor(async () => {
      const kinds = (await rowsOf("$system")).map(({ kind }) => kind);
      expect(kinds.filter((kind) => kind.startsWith("log.")).sort()).toEqual(["log.sealed", "log.stopped"]);
    }, 20_000);
  });

  it("stays to be read as far as it goes, for those who ask for its generation", async () => {
    const log = await stoppedLog("read");
    expect((await log.get("/head?generation=1")).status).toBe(503);
    await recover("read");
    const head = await log.get("/head?generation=1");
    expect([head.status, head.body.size]).toEqual([200, 3]);
    expect((await log.get("/verify?generation=1")).body.verdict).toBe("intact");
    expect((await log.get("/checkpoint?generation=1")).text).toContain(".1\n3\n");
    expect((await log.get("/tile/0/000.p/3?generation=1")).status).toBe(200);
    expect((await log.get("/proof/consistency?from=1&generation=1")).status).toBe(200);
    const page = await log.get("/entries?generation=1");
    expect((page.body.entries as unknown as unknown[]).length).toBe(3);
    expect((await log.get("/entries/2?generation=1&proof=true")).status).toBe(200);
    const bundle = await log.get("/export?generation=1");
    expect([bundle.status, verdictOf(bundle.text)]).toEqual([200, "intact"]);
    expect(bundle.text).toContain('"t":"content"');
    expect((await log.get("/head?generation=3")).status).toBe(404);
    // Without it everything is about the one that goes on.
    expect((await log.get("/head")).body.size).toBe(1);
    expect((await call(tenant.key, "GET", "/v1/entries")).status).toBe(200);
  });

  it("is never appended to again, and tells who knows no better", async () => {
    const log = await stoppedLog("sealed");
    const identity = await log.identity();
    const stub = await log.stub();
    await recover("sealed");
    const { ids, frame } = frameOf([entry()]);
    for (const past of [false, true]) {
      const outcome = await stub.append({ log: { ...identity, past }, epoch: 0, atomic: false, ids, frame });
      expect(outcome).toMatchObject({ ok: false, code: "log-stopped" });
    }
    const outcome = await stub.head(identity, 0);
    expect(outcome).toMatchObject({ moved: { tenant: tenant.id, name: "sealed" }, retryAfter: 1 });
    if (!outcome.ok) expect(refusal(outcome).code).toBe("log-stopped");
    expect(await log.inside(() => null)).toBeNull();
    expect((await inspect("sealed", "?generation=1")).body).toMatchObject({ state: "sealed" });
    expect((await inspect("sealed")).body).toMatchObject({ state: "running", generation: 2 });
  });

  it("is exported from its own storage where D1 contradicts it", async () => {
    const log = new TestLog(tenant, "evidence");
    await log.append(entries(3), "?wait=mirrored");
    const restore = await copyLog(log);
    await log.append(entries(2), "?wait=mirrored");
    await log.get("/entries");
    await env.DB.prepare("DELETE FROM entries WHERE seq = 4 AND tenant = ? AND kind = 'tool.call.started'")
      .bind(tenant.id)
      .run();
    await restore();
    expect(problemOf(await log.get("/head"))).toBe("log-stopped");
    await log.alarm();
    expect((await inspect("evidence")).body).toMatchObject({
      stop: { kind: "ahead", stored_head: { size: 3 }, mirrored_head: { size: 5 } },
    });
    expect((await recover("evidence")).status).toBe(200);
    const bundle = await log.get("/export?generation=1");
    expect([bundle.status, verdictOf(bundle.text)]).toEqual([200, "intact"]);
    expect((await log.append(entry())).status).toBe(201);
    expect((await call(tenant.key, "GET", "/v1/entries")).status).toBe(200);
  });

  it("may be the system log itself", async () => {
    await stoppedLog("$system");
    await stoppedLog("other");
    // What it is to say of another log waits for it.
    expect(problemOf(await recover("other"))).toBe("log-stopped");
    expect((await recover("$system")).status).toBe(200);
    expect((await recover("other")).status).toBe(200);
    const rows = await rowsOf("$system");
    expect(rows[0]?.kind).toBe("log.recovered");
    expect(rows.filter(({ kind }) => kind === "log.sealed").length).toBe(2);
  });
});

describe("recovery", () => {
  it("is refused for a log that is not stopped, which it leaves as it is", async () => {
    const log = new TestLog(tenant, "runs");
    await log.append(entries(2));
    const answer = await recover("runs");
    expect([answer.status, problemOf(answer)]).toEqual([409, "log-not-stopped"]);
    await log.append(entry());
    expect(await log.check()).toMatchObject({ size: 3 });
  });

  it("changes nothing the second time", async () => {
    await stoppedLog("twice");
    const first = await recover("twice");
    expect((await recover("twice", 1, "another reason")).body).toEqual(first.body);
    expect((await inspect("twice")).body.generation).toBe(2);
    expect(problemOf(await recover("twice", 2))).toBe("log-not-stopped");
    expect((await rowsOf("$system")).filter(({ kind }) => kind === "log.sealed").length).toBe(1);
  });

  it("goes on where it was cut off, and lets no client in before its first entry", async () => {
    const log = await stoppedLog("cut-off");
    const move = vi.spyOn(TenantDirectory.prototype, "moveGeneration").mockImplementation(() => {
      throw new Error("a Durable Object's storage took no write");
    });
    expect((await recover("cut-off")).status).toBe(503);
    expect(move).toHaveBeenCalled();
    move.mockRestore();
    // It is sealed, and the next generation has its first entry, but nobody is sent there yet.
    expect(problemOf(await log.append(entry()))).toBe("log-stopped");
    expect((await inspect("cut-off")).body).toMatchObject({ state: "sealed", generation: 1 });
    expect((await recover("cut-off")).status).toBe(200);
    expect((await log.append(entry())).status).toBe(201);
    expect((await rowsOf("cut-off")).map(({ kind }) => kind)).toEqual(["log.recovered", "tool.call.started"]);
  });

  it("is the operator's alone, of what is there, and says what is wrong with a request", async () => {
    await new TestLog(tenant, "there").append(entry());
    expect((await call(tenant.key, "POST", `${pathOf("there")}/recover`, {})).status).toBe(401);
    const absent = [
      await inspect("nobody"),
      await operator("GET", `/v1/tenants/${"ab".repeat(16)}/principals/there/log`),
      await recover("there", 2),
    ];
    expect(absent.map(({ status }) => status)).toEqual([404, 404, 404]);
    const bad = await operator("POST", `${pathOf("there")}/recover`, { generation: 0, reason: "x" });
    expect([bad.status, bad.body.pointer]).toEqual([400, "/generation"]);
  });
});
