import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it, vi } from "vitest";
import type { TestTenant } from "./support.ts";
import { call, entries, entry, newKey, newTenant } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
});

interface Out {
  seq: number;
  id: string;
  kind: string;
  hash: string;
  principal?: string;
}
interface Page {
  entries: Out[];
  next_cursor: string | null;
  head_seq: number;
}
const page = (answer: { body: unknown }) => answer.body as Page;
const path = (name: string) => `/v1/principals/${name}/entries`;

async function all(key: string, url: string): Promise<Out[]> {
  const out: Out[] = [];
  let cursor: string | null = null;
  do {
    const suffix: string = cursor === null ? "" : `${url.includes("?") ? "&" : "?"}cursor=${cursor}`;
    const answer = await call(key, "GET", url + suffix);
    expect(answer.status).toBe(200);
    out.push(...page(answer).entries);
    cursor = page(answer).next_cursor;
  } while (cursor !== null);
  return out;
}

describe("reading one log", () => {
  it("answers at once what was just acknowledged, with its leaf and values", async () => {
    const sent = entry({ occurred_at: "2026-01-02T03:04:05.123456789Z", actor: { type: "agent", id: "a1" } });
    await call(tenant.key, "POST", path("rw"), sent);
    const answer = await call(tenant.key, "GET", path("rw"));
    expect(page(answer)).toMatchObject({ next_cursor: null, head_seq: 1 });
    expect(page(answer).entries[0]).toMatchObject({ seq: 1, ...sent, submitter: { reporter: "agent" } });
    const one = await call(tenant.key, "GET", `${path("rw")}/1?proof=true`);
    expect(one.body).toMatchObject({ seq: 1, hash: page(answer).entries[0]?.hash });
    expect(one.body.proof).toContain("c2sp.org/tlog-proof@v1");
    expect((await call(tenant.key, "GET", `${path("rw")}/2`)).status).toBe(404);
  });

  it("pages with cursors that are bound to their query", async () => {
    await call(tenant.key, "POST", path("pages"), entries(25));
    const seqs = (await all(tenant.key, `${path("pages")}?limit=10`)).map(({ seq }) => seq);
    expect(seqs).toEqual(Array.from({ length: 25 }, (_, i) => i + 1));
    const first = page(await call(tenant.key, "GET", `${path("pages")}?limit=10`));
    const other = await call(
      tenant.key,
      "GET",
      `${path("pages")}?limit=10&kind=run.created&cursor=${first.next_cursor}`,
    );
    expect([other.status, other.body.type]).toEqual([400, "urn:runseal:problem:invalid-cursor"]);
    expect((await call(tenant.key, "GET", `${path("pages")}?cursor=x`)).status).toBe(400);
  });

  it("refuses what a query has beside what is declared, a question mark too many among it", async () => {
    for (const query of ["?limit=1", "?", "#?limit=0"])
      expect((await call(tenant.key, "GET", `${path("rw")}${query}`)).status).toBe(200);
    for (const [query, pointer] of [
      ["??limit=1", "??limit"],
      ["?limits=1", "?limits"],
      ["?limit=1&limit=1", "?limit"],
    ]) {
      const { status, body } = await call(tenant.key, "GET", `${path("rw")}${query}`);
      expect([status, body.type, body.pointer]).toEqual([
        400,
        "urn:runseal:problem:invalid-request",
        pointer,
      ]);
    }
  });

  it("selects by range, session, run, kind, tool, status and time", async () => {
    await call(tenant.key, "POST", path("filter"), [
      entry({ run: "r1", session: "s1" }),
      entry({ run: "r2", action: { tool: "send_mail", args: {} } }),
      entry({
        run: "r1",
        kind: "tool.call.completed",
        action: { tool: "read_file" },
        outcome: { status: "denied" },
      }),
    ]);
    const seqs = async (query: string) =>
      page(await call(tenant.key, "GET", `${path("filter")}?${query}`)).entries.map(({ seq }) => seq);
    expect(await seqs("run=r1")).toEqual([1, 3]);
    expect(await seqs("session=s1")).toEqual([1]);
    expect(await seqs("kind=tool.call.completed")).toEqual([3]);
    expect(await seqs("kind=tool.call.completed,tool.call.started")).toEqual([1, 2, 3]);
    expect(await seqs("tool=send_mail")).toEqual([2]);
    expect(await seqs("status=denied")).toEqual([3]);
    expect(await seqs("from=2&to=2")).toEqual([2]);
    expect(await seqs("since=2020-01-01T00:00:00Z")).toEqual([1, 2, 3]);
    expect(await seqs("until=2020-01-01T00:00:00Z")).toEqual([]);
    expect(await seqs("run=absent")).toEqual([]);
    const unknown = await call(tenant.key, "GET", `${path("filter")}?knid=x`);
    expect([unknown.status, unknown.body.pointer]).toEqual([400, "?knid"]);
  });

  it("answers 503 index-rebuilding while the index is away, and never a short page", async () => {
    await call(tenant.key, "POST", path("behind"), entries(2));
    await call(tenant.key, "GET", path("behind"));
    const spy = vi.spyOn(env.DB, "batch").mockRejectedValue(new Error("D1_ERROR: away"));
    const appended = await call(tenant.key, "POST", path("behind"), entries(2));
    expect(appended.status).toBe(201);
    const answer = await call(tenant.key, "GET", path("behind"));
    spy.mockRestore();
    if (answer.status === 200) expect(page(answer).entries.length).toBe(4);
    else expect([answer.status, answer.body.type]).toEqual([503, "urn:runseal:problem:index-rebuilding"]);
    expect((await all(tenant.key, path("behind"))).length).toBe(4);
  });

  it("notices a D1 that lost rows, says so, and fills it again", async () => {
    await call(tenant.key, "POST", path("lost"), entries(5));
    await call(tenant.key, "GET", path("lost"));
    await env.DB.prepare("DELETE FROM entries WHERE log = (SELECT log FROM logs WHERE name = 'lost')").run();
    await env.DB.prepare("DELETE FROM runs WHERE log = (SELECT log FROM logs WHERE name = 'lost')").run();
    await env.DB.prepare("UPDATE logs SET last_seq = 0, last_hash = log_id WHERE name = 'lost'").run();
    const answer = await call(tenant.key, "GET", path("lost"));
    expect([answer.status, answer.body.type]).toEqual([503, "urn:runseal:problem:index-rebuilding"]);
    expect((await all(tenant.key, path("lost"))).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
  });
});

describe("reading the whole tenant", () => {
  it("answers every log's matching entries, newest acknowledged included", async () => {
    const other = await newTenant("wide");
    const denied = (id: string) => ({
      id,
      kind: "tool.call.completed",
      action: { tool: "send_mail" },
      outcome: { status: "denied" },
    });
    for (const name of ["a", "b", "c"]) {
      await call(other.key, "POST", path(name), [entry(), denied(`d-${name}`)]);
    }
    const found = await all(other.key, "/v1/entries?kind=tool.call.completed&status=denied&limit=2");
    expect(found.map(({ principal, id }) => [principal, id]).sort()).toEqual([
      ["a", "d-a"],
      ["b", "d-b"],
      ["c", "d-c"],
    ]);
    await call(other.key, "POST", path("a"), denied("later"));
    expect((await all(other.key, "/v1/entries?kind=tool.call.completed")).at(-1)?.id).toBe("later");
  });

  it("shows a key only the principals that it is for", async () => {
    const other = await newTenant("scoped");
    for (const name of ["mine", "theirs"]) await call(other.key, "POST", path(name), entries(2));
    const key = await newKey(other, ["read"], ["mine"]);
    expect((await all(key, "/v1/entries")).map(({ principal }) => principal)).toEqual(["mine", "mine"]);
  });
});

describe("runs", () => {
  it("are listed with their spans and summed up", async () => {
    await call(tenant.key, "POST", path("runs"), [
      { id: "c1", kind: "run.created", run: "r1", action: { goal: "x" } },
      entry({ run: "r1" }),
      entry({ run: "r2" }),
      { id: "f1", kind: "run.completed", run: "r1", action: {} },
    ]);
    const list = await call(tenant.key, "GET", "/v1/principals/runs/runs");
    expect(list.body.runs).toEqual([
      { run: "r1", first_seq: 1, last_seq: 4, entries: 3 },
      { run: "r2", first_seq: 3, last_seq: 3, entries: 1 },
    ]);
    const one = await call(tenant.key, "GET", "/v1/principals/runs/runs/r1");
    expect(one.body).toMatchObject({
      run: "r1",
      entries: 3,
      status: "completed",
      kinds: { "run.created": 1, "tool.call.started": 1, "run.completed": 1 },
      tools: { read_file: 1 },
    });
    expect((await call(tenant.key, "GET", "/v1/principals/runs/runs/none")).status).toBe(404);
  });
});
