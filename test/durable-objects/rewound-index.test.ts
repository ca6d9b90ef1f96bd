import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import type { TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import { entries, newTenant, problemOf, TestLog } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
});

/** A log of six entries of which D1, set back to an older copy, holds two. */
async function rewound(name: string): Promise<TestLog> {
  const log = new TestLog(tenant, name);
  await log.append(entries(6));
  expect((await log.get("/entries")).status).toBe(200);
  const row = await env.DB.prepare(
    "SELECT e.log, e.hash FROM logs l JOIN entries e ON e.log = l.log AND e.seq = 2 WHERE l.name = ? AND l.tenant = ?",
  )
    .bind(name, tenant.id)
    .first<{ log: number; hash: string }>();
  await env.DB.batch([
    env.DB.prepare("DELETE FROM entries WHERE log = ? AND seq > 2").bind(row?.log),
    env.DB.prepare("UPDATE logs SET last_seq = 2, last_hash = ? WHERE log = ?").bind(row?.hash, row?.log),
    env.DB.prepare("UPDATE arrivals SET next = next - 4 WHERE tenant = ?").bind(tenant.id),
  ]);
  return log;
}

describe("D1 that went backwards under a log at rest", () => {
  it.each(["/entries", "/entries/5", "/runs", "/runs/run-1"])(
    "is noticed by %s, and filled again",
    async (path) => {
      const log = await rewound(`noticed${path.replaceAll("/", "-")}`);
      const answer = await log.get(path);
      expect([answer.status, problemOf(answer)]).toEqual([503, "index-rebuilding"]);
      expect((await log.get(path)).status).toBe(200);
      expect((await log.check()).size).toBe(6);
    },
  );

  it("is filled again by the next append's flush", async () => {
    const log = await rewound("next-append");
    await log.append(entries(2));
    expect((await log.check()).size).toBe(8);
  });

  // These are not noticed yet: workers/logs asks neither D1's row of the log nor the tenant's arrivals there. Each turns
  // red when it is mended, and is then an ordinary test.
  it.fails.each(["/verify", "/export"])(
    "is noticed by %s, which must not call it a break of the log",
    async (path) => {
      const log = await rewound(`not-yet${path.replaceAll("/", "-")}`);
      const answer = await log.get(path);
      expect([answer.status, problemOf(answer)]).toEqual([503, "index-rebuilding"]);
    },
  );

  it.fails("is noticed by a reader of the whole tenant, which must not get a page that is short", async () => {
    await rewound("not-yet-tenant");
    expect((await call(tenant.key, "GET", "/v1/entries?limit=1000")).status).toBe(503);
  });
});
