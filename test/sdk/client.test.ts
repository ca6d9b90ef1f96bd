import { afterEach, expect, it, vi } from "vitest";
import { RunsealClient } from "../../sdk/client.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

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

it.each([
  ["0", [200, 400, 800]],
  [new Date(0).toUTCString(), [200, 400, 800]],
  ["1", [1000, 1000, 1000]],
])("pauses for its own time at least, and as long as it is asked to: %s", async (retryAfter, expected) => {
  const taken: (number | undefined)[] = [];
  vi.spyOn(Math, "random").mockReturnValue(0);
  vi.spyOn(globalThis, "setTimeout").mockImplementation(((done: () => void, ms?: number) => {
    taken.push(ms);
    queueMicrotask(done);
  }) as never);
  const client = new RunsealClient({
    url: "http://service.test",
    apiKey: "k",
    attempts: 4,
    fetch: async () => new Response("{}", { status: 503, headers: { "retry-after": retryAfter } }),
  });
  await expect(client.head("a")).rejects.toMatchObject({ status: 503 });
  expect(taken).toEqual(expected);
});

it("sends an entry once that is more than a limit ever takes", async () => {
  let requests = 0;
  const client = new RunsealClient({
    url: "http://service.test",
    apiKey: "k",
    fetch: async () => {
      requests += 1;
      const headers = {
        "retry-after": "1",
        "ratelimit-policy": '"key-bytes";q=99;w=86400;qu="content-bytes"',
      };
      return new Response("{}", { status: 429, headers });
    },
  });
  const entry = { kind: "message.delta", action: { chunk: "x".repeat(100) } } as const;
  await expect(client.append("a", [entry])).rejects.toMatchObject({ status: 429, limits: { bytes: 99 } });
  expect(requests).toBe(1);
});
