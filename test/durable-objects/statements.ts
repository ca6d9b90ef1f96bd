/**
 * What D1 is asked inside workerd: the service uses the same binding as the test.
 *
 * @module
 */
import { env } from "cloudflare:workers";
import { vi } from "vitest";

/** Notes every statement that D1 is asked to prepare from now on, until the mocks are restored. */
export function noteStatements(): ReadonlySet<string> {
  const noted = new Set<string>();
  const noting = (target: { prepare: D1Database["prepare"] }): void => {
    const original = target.prepare.bind(target);
    vi.spyOn(target, "prepare").mockImplementation((sql) => {
      noted.add(sql);
      return original(sql);
    });
  };
  const withSession = env.DB.withSession.bind(env.DB);
  noting(env.DB);
  vi.spyOn(env.DB, "withSession").mockImplementation((constraint) => {
    const session = withSession(constraint);
    noting(session);
    return session;
  });
  return noted;
}

/** The lines of SQLite's plan for a statement. What is bound does not change it. */
export async function planOf(sql: string): Promise<string[]> {
  const { results } = await env.DB.prepare(`EXPLAIN QUERY PLAN ${sql}`)
    .bind(...Array.from({ length: parametersOf(sql) }, () => null))
    .all<{ detail: string }>();
  return results.map(({ detail }) => detail);
}

function parametersOf(sql: string): number {
  const marks = [...sql.matchAll(/\?(\d*)/g)].map(([, number]) => number ?? "");
  const numbered = marks.filter((number) => number !== "").map(Number);
  return numbered.length > 0 ? Math.max(...numbered) : marks.length;
}

/** Names that the table `entries` has in a statement; empty where the statement has nothing to do with it. */
function namesOfEntries(sql: string): Set<string> {
  const found = [...sql.matchAll(/\b(?:FROM|JOIN|UPDATE|INTO)\s+entries\b(?:\s+(?:AS\s+)?([a-z]\w*))?/g)];
  return new Set(found.map(([, alias]) => alias ?? "entries"));
}

export interface PlannedStatement {
  readonly sql: string;
  /** The lines of its plan that go to the table `entries`. */
  readonly steps: readonly string[];
}

/** The statements that name the table `entries`, with what their plans say of it. */
export async function plansOfEntries(statements: Iterable<string>): Promise<PlannedStatement[]> {
  const planned: PlannedStatement[] = [];
  for (const sql of statements) {
    const names = namesOfEntries(sql);
    if (names.size === 0) continue;
    const steps = (await planOf(sql)).filter((line) => {
      const table = /^(?:SCAN|SEARCH) (\w+)/.exec(line)?.[1];
      return table !== undefined && names.has(table);
    });
    planned.push({ sql, steps });
  }
  return planned;
}
