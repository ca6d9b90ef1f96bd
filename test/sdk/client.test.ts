import { expect, it } from "vitest";
import { RunsealClient } from "../../sdk/client.ts";

it("creating a tenant is one request, however often it is sent: another call is another one", async () => {
  const keys: (string | null)[] = [];
  const client = new RunsealClient({
    url: "http://service.test",
    apiKey: "operator",
    fetch: (async (_url: string, init: RequestInit) => {
      keys.push(new Headers(init.headers).get("idempotency-key"));
      if (keys.length === 1) throw new Error("the answer got lost");
      if (keys.length === 2) return new Response("{}", { status: 503, headers: { "retry-after": "0" } });
      return new Response('{"api_key":"k"}', { status: 201 });
    }) as typeof fetch,
  });
  expect(await client.createTenant("acme")).toEqual({ api_key: "k" });
  await client.createTenant("acme");
  const [first, second, third, other] = keys;
  expect([first, second, third]).toEqual([first, first, first]);
  expect(first).toMatch(/^[0-9a-f-]{36}$/);
  expect(other).not.toBe(first);
});
