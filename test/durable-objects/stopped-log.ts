/**
 * A log that its mirror contradicts.
 *
 * @module
 */
import { env } from "cloudflare:workers";
import { vi } from "vitest";
import type { Answer, TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import { entries, problemOf, TestLog } from "./support.ts";

/** A log of three entries that finds a head in its mirror which is not its own; `$system` as it is. */
export async function stopLog(tenant: TestTenant, name: string): Promise<TestLog> {
  const log = new TestLog(tenant, name);
  if (name !== "$system") await log.append(entries(3), "?wait=mirrored");
  const key = `${await log.prefix()}/checkpoint`;
  await vi.waitFor(async () => {
    await log.alarm();
    if ((await env.MIRROR.head(key)) === null) throw new Error("not mirrored yet");
  }, 10_000);
  const text = (await (await env.MIRROR.get(key))?.text()) ?? "";
  await env.MIRROR.put(key, text.replace(/\n(\d+)\n.+\n/, `\n$1\n${btoa("\u0007".repeat(32))}\n`));
  await log.evict();
  const answer = await log.get("/head");
  if (problemOf(answer) !== "log-stopped") throw new Error(`not stopped: ${answer.status} ${answer.text}`);
  return log;
}

/** Stops a log, and recovers it. */
export async function recoverStopped(tenant: TestTenant, name: string): Promise<Answer> {
  await stopLog(tenant, name);
  const path = `/v1/tenants/${tenant.id}/principals/${name}/recover`;
  return call(env.RUNSEAL_OPERATOR_TOKEN, "POST", path, { generation: 1, reason: "test" });
}
