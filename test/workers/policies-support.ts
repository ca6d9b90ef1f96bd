/**
 * Policies and tool specs that D1 loses, and the operator's rebuild.
 *
 * @module
 */
import { env } from "cloudflare:workers";
import { expect } from "vitest";
import type { Answer, TestTenant } from "./support.ts";
import { call } from "./support.ts";

export const RULES = { rules: { side_effects: { read_only: "allow" } } };
export const STRICT = {
  rules: { side_effects: { read_only: "deny" }, tools: { "a<b": { outcome: "allow" } } },
};
export const CEDAR = { cedar: 'permit(principal, action == Action::"read_file", resource);' };

/** Status and code of a problem. */
export function problemOf({ status, body }: Answer): [number, string] {
  return [status, String(body.type).replace("urn:runseal:problem:", "")];
}

/** The rows of both tables of some tenants. */
export async function rowsOf(tenants: readonly TestTenant[]): Promise<Record<string, unknown>[]> {
  const ids = JSON.stringify(tenants.map(({ id }) => id));
  const all = ["policies", "tool_specs"].map((table) =>
    env.DB.prepare(
      `SELECT * FROM ${table} WHERE tenant IN (SELECT value FROM json_each(?)) ORDER BY 1, 2, 3`,
    ).bind(ids),
  );
  return (await env.DB.batch<Record<string, unknown>>(all)).flatMap(({ results }) => results);
}

/** Empties both tables. */
export async function lose(): Promise<void> {
  await env.DB.batch([env.DB.prepare("DELETE FROM policies"), env.DB.prepare("DELETE FROM tool_specs")]);
}

interface Step {
  readonly done: boolean;
  readonly cursor: string | null;
  readonly restored: number;
  readonly refused: number;
}

/** One step of a rebuild. */
export function step(body: unknown): Promise<Answer> {
  return call(env.RUNSEAL_OPERATOR_TOKEN, "POST", "/v1/admin/rebuild-index", body);
}

/** Every step of a rebuild, of all tenants or of one; from a cursor on, where one was begun. */
export async function rebuild(
  only?: TestTenant,
  from: string | null = null,
): Promise<{ steps: number; restored: number; refused: number }> {
  let [steps, restored, refused] = [0, 0, 0];
  for (let cursor = from; ; ) {
    const answer = await step({
      ...(only === undefined ? {} : { tenant: only.id }),
      ...(cursor === null ? {} : { cursor }),
    });
    expect(answer.status, answer.text).toBe(200);
    const one = answer.body as unknown as Step;
    steps += 1;
    expect(steps).toBeLessThan(200);
    restored += one.restored;
    refused += one.refused;
    if (one.done) return { steps, restored, refused };
    cursor = one.cursor;
  }
}
