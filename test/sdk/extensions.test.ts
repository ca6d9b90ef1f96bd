import { expect, it } from "vitest";
import { ProblemError, RunsealClient } from "../../sdk/client.ts";
import { Extensions } from "../../sdk/extensions.ts";

/** Extensions of a service that answers what it is told to. */
function extensionsOf(answers: { status?: number; body: unknown }[]) {
  const sent: string[] = [];
  const client = new RunsealClient({
    url: "http://service.test",
    apiKey: "k",
    fetch: (async (url: string, init: RequestInit) => {
      const { pathname, search } = new URL(url);
      sent.push(`${init.method} ${pathname}${search} ${String(init.body ?? "")}`.trim());
      const { status = 200, body } = answers[sent.length - 1] ?? { body: null };
      return new Response(JSON.stringify(body), { status });
    }) as typeof fetch,
  });
  return { extensions: new Extensions(client), sent };
}

const version = { prefix: "acme", version: 2, hash: "ab", created_at: "t" };

it("a declaration is sent as it is given, and its answer says whether it is new", async () => {
  const { extensions, sent } = extensionsOf([{ status: 201, body: version }, { body: version }]);
  const declaration = { kinds: { n: { action: { type: "object" } } } };
  expect(await extensions.declare("acme", declaration)).toEqual({ ...version, isNew: true });
  const text = '{"kinds": {"n": {"action": {"maximum": 1.0}}}}';
  expect(await extensions.declare("acme", text)).toEqual({ ...version, isNew: false });
  expect(sent).toEqual([
    `PUT /v1/extensions/acme ${JSON.stringify(declaration)}`,
    `PUT /v1/extensions/acme ${text}`,
  ]);
});

it("a declaration that is refused is thrown with its problem", async () => {
  const problem = { type: "urn:runseal:problem:invalid-extension", pointer: "/kinds/n" };
  const { extensions } = extensionsOf([{ status: 422, body: problem }]);
  const refused = await extensions.declare("acme", "{}").catch((error: unknown) => error);
  expect(refused instanceof ProblemError && refused.problem.pointer).toBe("/kinds/n");
});

it("what is declared is listed, and read by prefix and version", async () => {
  const listed = [{ ...version, kinds: ["n"] }];
  const { extensions, sent } = extensionsOf([
    { body: { extensions: listed } },
    { body: version },
    { body: version },
  ]);
  expect(await extensions.list()).toEqual(listed);
  expect(await extensions.get("acme")).toEqual(version);
  await extensions.get("acme", 1);
  expect(sent).toEqual([
    "GET /v1/extensions",
    "GET /v1/extensions/acme",
    "GET /v1/extensions/acme?version=1",
  ]);
});
