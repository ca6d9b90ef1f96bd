import { describe, expect, it } from "vitest";
import { Anchors } from "../../sdk/anchors.ts";
import { ProblemError, RunsealClient } from "../../sdk/client.ts";

interface Answer {
  readonly status?: number;
  readonly body: unknown;
}

/** Anchors of a service that answers what it is told to. */
function anchorsOf(answers: Answer[]): { anchors: Anchors; sent: { path: string; body: unknown }[] } {
  const sent: { path: string; body: unknown }[] = [];
  const client = new RunsealClient({
    url: "http://service.test",
    apiKey: "k",
    fetch: (async (url: string, init: RequestInit) => {
      const { pathname, search } = new URL(url);
      sent.push({
        path: `${init.method} ${pathname}${search}`,
        body: JSON.parse(String(init.body ?? "null")),
      });
      const { status = 200, body } = answers[sent.length - 1] ?? { body: null };
      return new Response(JSON.stringify(body), { status });
    }) as typeof fetch,
  });
  return { anchors: new Anchors(client), sent };
}

describe("an anchor", () => {
  it("is of a principal's log, or of the tenant's log of heads", async () => {
    const taken = { result: "advanced", log_id: "ab", size: 3, root: "cd" };
    const { anchors, sent } = anchorsOf([{ body: taken }, { body: taken }]);
    expect(await anchors.add({ principal: "a", checkpoint: "c", where: "w", receipt: "r" })).toEqual(taken);
    await anchors.add({ checkpoint: "c", where: "w" });
    expect(sent).toEqual([
      { path: "POST /v1/anchors", body: { principal: "a", checkpoint: "c", where: "w", receipt: "r" } },
      { path: "POST /v1/anchors", body: { log: "tenant", checkpoint: "c", where: "w" } },
    ]);
  });

  it("that is rejected is an answer with its reason; every other problem is thrown", async () => {
    const problem = (name: string) => ({ type: `urn:runseal:problem:${name}`, reason: "ahead", detail: "d" });
    const { anchors } = anchorsOf([
      { status: 409, body: problem("anchor-rejected") },
      { status: 409, body: problem("log-stopped") },
      { status: 404, body: problem("not-found") },
    ]);
    const add = () => anchors.add({ principal: "a", checkpoint: "c", where: "w" });
    expect(await add()).toEqual({ result: "rejected", reason: "ahead", detail: "d" });
    await expect(add()).rejects.toThrow(ProblemError);
    await expect(add()).rejects.toThrow(ProblemError);
  });
});

it("the list has the tenant's log once, and the others page by page", async () => {
  const log = (principal: string | null) => ({ principal });
  const { anchors, sent } = anchorsOf([
    { body: { log: log(null), logs: [log("a"), log("b")], next_cursor: "c+1" } },
    { body: { log: log(null), logs: [log("c")], next_cursor: null } },
  ]);
  const names: unknown[] = [];
  for await (const { principal } of anchors.list()) names.push(principal);
  expect(names).toEqual([null, "a", "b", "c"]);
  expect(sent.map(({ path }) => path)).toEqual(["GET /v1/anchors", "GET /v1/anchors?cursor=c%2B1"]);
});
