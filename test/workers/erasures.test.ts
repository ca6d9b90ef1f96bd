import { beforeAll, describe, expect, it } from "vitest";
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex, utf8 } from "../../shared/bytes.ts";
import type { Answer, TestTenant } from "./support.ts";
import { call, entries, entry, newKey, newTenant } from "./support.ts";

let tenant: TestTenant;
let other: TestTenant;
beforeAll(async () => {
  tenant = await newTenant("mine");
  other = await newTenant("other");
});

const post = (key: string, path: string, body: unknown) => call(key, "POST", path, body);
const erase = (principal: string, body: Record<string, unknown>, key = tenant.key): Promise<Answer> =>
  post(key, `/v1/principals/${principal}/erasures`, { reason: "asked for", ...body });
const get = (path: string) => call(tenant.key, "GET", path);
const problem = ({ status, body }: Answer) => [
  status,
  String(body.type).replace("urn:runseal:problem:", ""),
  body.pointer,
];

interface Receipt {
  id: string;
  seq: number;
  hash: string;
}

describe("after an erasure", () => {
  let sent: Record<string, unknown>;
  let receipt: Receipt;
  let answer: Answer;
  let before: { bundle: Answer; proof: Answer; head: Answer };
  beforeAll(async () => {
    sent = entry({ id: "erased-one", action: { tool: "person_lookup", args: { name: "Ada Example" } } });
    const stored = await post(tenant.key, "/v1/principals/agent/entries", [
      ...entries(2),
      sent,
      ...entries(2),
    ]);
    receipt = (stored.body.results as unknown as Receipt[])[2] as Receipt;
    before = {
      bundle: await get("/v1/principals/agent/export"),
      proof: await get("/v1/principals/agent/proof/inclusion?seq=3"),
      head: await get("/v1/principals/agent/head"),
    };
    answer = await erase("agent", { ids: ["erased-one"] });
  });

  it("it is answered what is done, where it is recorded, and until when a restored copy could have it", async () => {
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ entries: 1, done: ["log", "index", "record"], pending: [] });
    const days = (Date.parse(String(answer.body.recoverable_until)) - Date.now()) / 86_400_000;
    expect(Math.round(days)).toBe(30);
    const log = await get("/v1/principals/$system/entries?kind=erasure.requested,erasure.done");
    const [requested, done] = log.body.entries as unknown as (Receipt & {
      action: Record<string, unknown>;
    })[];
    const { principals: _, ...admin } = (await get("/v1/api-keys")).body as { principals?: unknown };
    const [key] = (admin as unknown as { api_keys: { id: string }[] }).api_keys;
    const facts = { from: 3, to: 3, by: key?.id, reason: "asked for" };
    expect(requested?.action).toMatchObject(facts);
    expect(done?.action).toMatchObject({
      ...facts,
      count: 1,
      recoverable_until: answer.body.recoverable_until,
    });
    expect([requested?.seq, requested?.hash]).toEqual(
      Object.values(answer.body.requested as unknown as object),
    );
    expect([done?.seq, done?.hash]).toEqual(Object.values(answer.body.recorded as unknown as object));
  });

  it("the entry is there with its envelope, and says of its fields that they were erased", async () => {
    const one = await get("/v1/principals/agent/entries/3?proof=true");
    expect(one.body).toMatchObject({ id: "erased-one", run: "run-1", hash: receipt.hash });
    expect(Object.values(one.body.action as unknown as object)).toEqual([
      { $erased: true, $commitment: expect.any(String) },
      { $erased: true, $commitment: expect.any(String) },
    ]);
    for (const path of [
      "/v1/principals/agent/entries",
      "/v1/entries",
      "/v1/principals/agent/runs/run-1",
      "/v1/principals/agent/export",
    ]) {
      const { status, text } = await get(path);
      expect([path, status, text.includes("Ada Example"), text.includes("person_lookup")]).toEqual([
        path,
        200,
        false,
        false,
      ]);
    }
  });

  it("the same id again is 409 erased, with the receipt; whatever is sent under it", async () => {
    for (const again of [sent, { ...sent, action: { tool: "x", args: 1 } }]) {
      const single = await post(tenant.key, "/v1/principals/agent/entries", again);
      expect(problem(single)).toEqual([409, "erased", undefined]);
      expect((single.body.results as unknown as Receipt[])[0]).toMatchObject({
        id: receipt.id,
        seq: receipt.seq,
        hash: receipt.hash,
      });
    }
    const batch = await post(tenant.key, "/v1/principals/agent/entries", [entry(), sent]);
    expect(batch.status).toBe(207);
    expect((batch.body.results as unknown as Receipt[])[1]).toMatchObject({ seq: 3, hash: receipt.hash });
  });

  it("the log, its proofs, and bundles from before and after it verify", async () => {
    expect((await get("/v1/principals/agent/verify")).body.verdict).toBe("intact");
    const proof = await get(`/v1/principals/agent/proof/inclusion?seq=3&size=${before.head.body.size}`);
    expect(proof.body.path).toEqual(before.proof.body.path);
    for (const bundle of [before.bundle, await get("/v1/principals/agent/export")]) {
      const report = await post(tenant.key, `/v1/verify?registry=${tenant.registryId}`, bundle.text);
      expect([report.body.verdict, report.body.pinned]).toEqual(["intact", true]);
    }
  });

  it("of one field, the others are there, and the id is taken all the same", async () => {
    const partly = entry({ id: "partly", action: { tool: "pay", args: { iban: "XX00" } } });
    await post(tenant.key, "/v1/principals/partly/entries", partly);
    expect((await erase("partly", { seq: 1, fields: ["action.args"] })).body.entries).toBe(1);
    const { body } = await get("/v1/principals/partly/entries/1");
    expect(body.action).toEqual({ tool: "pay", args: { $erased: true, $commitment: expect.any(String) } });
    expect(problem(await post(tenant.key, "/v1/principals/partly/entries", partly))).toEqual([
      409,
      "erased",
      undefined,
    ]);
    const report = await get("/v1/principals/partly/verify");
    expect(report.body.verdict).toBe("intact");
    const bundle = await get("/v1/principals/partly/export");
    expect(bundle.text).toContain('\\"pay\\"');
    expect((await post(tenant.key, "/v1/verify", bundle.text)).body.verdict).toBe("intact");
  });

  it("a recheck says that it can't judge, for it was erased; an audit does not call it a break", async () => {
    const spec = '{"name":"read_file","side_effect":"read_only"}';
    const hash = toHex(nativeCrypto.sha256(utf8(spec)));
    expect((await call(tenant.key, "PUT", `/v1/tools/${hash}`, spec)).status).toBeLessThan(300);
    const evaluation = entry({
      id: "ev",
      kind: "policy.evaluated",
      run: "r",
      action: {
        tool: "read_file",
        args: {},
        spec_hash: hash,
        decision: { outcome: "allow" },
        view: {
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
    });
    const created = { id: "rc", kind: "run.created", run: "r", action: { goal: "g" } };
    const stored = await post(tenant.key, "/v1/principals/checked/entries", [created, evaluation]);
    expect([stored.status, stored.text.slice(0, 200)]).toEqual([201, expect.any(String)]);
    const policy = { policy: { rules: { side_effects: {} } } };
    expect((await erase("checked", { ids: ["ev"], fields: ["action.args"] })).status).toBe(200);
    const { body, status, text } = await post(tenant.key, "/v1/principals/checked/runs/r/recheck", policy);
    expect([status, text.slice(0, 200)]).toEqual([200, expect.any(String)]);
    const [judged] = body.evaluations as unknown as { result: string; detail?: string }[];
    expect(judged?.result).toBe("not_recheckable");
    expect(judged?.detail).toBe("not re-checkable: erased: args of its policy.evaluated");
    const audit = await get("/v1/principals/checked/runs/r/audit");
    expect(audit.status).toBe(200);
    expect(audit.text).toContain("erased");
  });
});

describe("a request for an erasure", () => {
  beforeAll(async () => {
    await post(tenant.key, "/v1/principals/asked/entries", entries(3));
    await post(other.key, "/v1/principals/theirs/entries", [entry({ id: "their-id" })]);
  });

  it.each<[Record<string, unknown>, string]>([
    [{}, ""],
    [{ seq: 1, from: 1, to: 1 }, ""],
    [{ seq: 1, ids: ["x"] }, ""],
    [{ from: 1 }, "/to"],
    [{ to: 1 }, "/from"],
    [{ from: 2, to: 1 }, "/to"],
    [{ from: 1, to: 1001 }, "/to"],
    [{ from: 1, to: 4 }, "/to"],
    [{ seq: 4 }, "/to"],
    [{ seq: 0 }, "/seq"],
    [{ seq: 1.5 }, "/seq"],
    [{ seq: "1" }, "/seq"],
    [{ ids: [] }, "/ids"],
    [{ ids: ["e e"] }, "/ids/0"],
    [{ ids: ["their-id"] }, "/ids/0"],
    [{ seq: 1, fields: [] }, "/fields"],
    [{ seq: 1, fields: ["args"] }, "/fields/0"],
    [{ seq: 1, fields: ["action.args", "outcome.*"] }, "/fields/1"],
    [{ seq: 1, reason: "" }, "/reason"],
    [{ seq: 1, why: "x" }, "/why"],
  ])("that is %j is refused, and nothing is erased or recorded", async (body, pointer) => {
    const count = async () =>
      (
        (await get("/v1/principals/$system/entries?kind=erasure.requested&limit=1000")).body
          .entries as unknown as unknown[]
      ).length;
    const recorded = await count();
    expect(problem(await erase("asked", body))).toEqual([400, "invalid-request", pointer]);
    expect(await count()).toBe(recorded);
    expect((await get("/v1/principals/asked/entries")).text).not.toContain("$erased");
  });

  it("reaches no other tenant: a foreign principal and an absent one are answered alike", async () => {
    const strip = ({ status, text }: Answer) => [status, text.replace(/"request_id":"[^"]*"/, "")];
    const foreign = await erase("theirs", { seq: 1 });
    expect(foreign.status).toBe(404);
    expect(strip(foreign)).toEqual(strip(await erase("nobody", { seq: 1 })));
    const theirs = await call(other.key, "GET", "/v1/principals/theirs/entries/1");
    expect(theirs.text).not.toContain("$erased");
  });

  it("takes the scope admin, and a key for the principal", async () => {
    const reader = await newKey(tenant, ["read", "ingest", "verify", "create"]);
    expect(problem(await erase("asked", { seq: 1 }, reader)).slice(0, 2)).toEqual([403, "forbidden"]);
    const elsewhere = await newKey(tenant, ["admin"], ["another"]);
    expect(problem(await erase("asked", { seq: 1 }, elsewhere)).slice(0, 2)).toEqual([404, "not-found"]);
    expect((await get("/v1/principals/asked/entries")).text).not.toContain("$erased");
  });

  it("erases nothing from the service's own log", async () => {
    expect(problem(await erase("$system", { seq: 1 })).slice(0, 2)).toEqual([403, "forbidden"]);
  });
});
