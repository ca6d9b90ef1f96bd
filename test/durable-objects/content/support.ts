/**
 * What the tests of content and its erasure look at: every place that holds it.
 *
 * @module
 */
import { env } from "cloudflare:test";
import { PASS_LIMITS } from "../../../durable-objects/content/pass.ts";
import { ALARM_PACE } from "../../../durable-objects/principal-log/flush-alarm.ts";
import type { Answer } from "../../workers/support.ts";
import { call } from "../../workers/support.ts";
import type { TestLog } from "../support.ts";

// No pass but those that a test asks for: an alarm that goes off by itself meanwhile would end `settle` too soon.
ALARM_PACE.breathMs = 60_000;
// What a pass does is told by its bounds, not by how fast the machine is.
PASS_LIMITS.ms = 600_000;

/** Runs the alarm until nothing is left to do. */
export async function settle(log: TestLog): Promise<void> {
  for (let round = 0; round < 20 && (await log.alarm()); round++);
}

/** Asks for an erasure with the tenant's admin key. */
export function erase(log: TestLog, body: Record<string, unknown>): Promise<Answer> {
  return call(log.tenant.key, "POST", `${log.path}/erasures`, { reason: "the person asked for it", ...body });
}

/** The places where a text that was sent is to be found: the log's storage, D1, and what a reader is answered. */
export async function placesOf(log: TestLog, text: string): Promise<string[]> {
  const places: string[] = [];
  const here = await log.inside((state) => {
    const tables = state.storage.sql
      .exec("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\'")
      .toArray();
    return tables
      .map(({ name }) => String(name))
      .filter((name) =>
        JSON.stringify(state.storage.sql.exec(`SELECT * FROM ${name}`).toArray()).includes(text),
      );
  });
  places.push(...here);
  for (const table of ["entries", "runs", "logs"]) {
    const { results } = await env.DB.prepare(`SELECT * FROM ${table}`).all();
    if (JSON.stringify(results).includes(text)) places.push(`D1 ${table}`);
  }
  for (const path of ["/entries?limit=1000", "/export", "/runs/run-1"]) {
    const answer = await log.get(path);
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${answer.text.slice(0, 200)}`);
    if (answer.text.includes(text)) places.push(path);
  }
  return places;
}

/** Entries of the kind on the tenant's system log, oldest first. */
export async function systemEntries(
  log: TestLog,
  kind: string,
): Promise<{ seq: number; hash: string; id: string; action: Record<string, unknown> }[]> {
  const { body } = await call(
    log.tenant.key,
    "GET",
    `/v1/principals/$system/entries?kind=${kind}&limit=1000`,
  );
  return (body as { entries?: never }).entries ?? [];
}
