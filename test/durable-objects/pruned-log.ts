/**
 * Logs whose old segments leave their object, under lowered bounds: entries of every form that content takes, in commits
 * of every size.
 *
 * @module
 */
import { env } from "cloudflare:workers";
import { ID_LIMITS } from "../../durable-objects/principal-log/id-index.ts";
import { PRUNE_LIMITS } from "../../durable-objects/principal-log/prune.ts";
import { MIRROR_PACE } from "../../durable-objects/tile-store/mirror-keeper.ts";
import { call } from "../workers/support.ts";
import { erase, settle } from "./content/support.ts";
import { entries, entry, type TestLog } from "./support.ts";

const limits = { ...PRUNE_LIMITS };
const idLimits = { ...ID_LIMITS };

/** Small logs are pruned from here on: all but the newest 256 entries, and what an incomplete step has. */
export function lowerBounds(): void {
  MIRROR_PACE.minPutInterval = 1;
  Object.assign(ID_LIMITS, { remembered: 100, windowMs: 0 });
  PRUNE_LIMITS.entries = 64;
}

/** Nothing is pruned until the bounds are lowered again. */
export function stopPruning(): void {
  PRUNE_LIMITS.entries = Number.MAX_SAFE_INTEGER;
}

export function restoreBounds(): void {
  Object.assign(PRUNE_LIMITS, limits);
  Object.assign(ID_LIMITS, idLimits);
}

/** Up to which entry the log is pruned, and where its segments begin. */
export async function prunedTo(log: TestLog): Promise<{ seq: number; segments: number }> {
  return log.inside((state) => {
    const [pruned] = state.storage.sql.exec("SELECT max(first_seq + count) - 1 AS seq FROM pruned").toArray();
    const [first] = state.storage.sql.exec("SELECT min(first_seq) AS seq FROM segments").toArray();
    return { seq: Number(pruned?.seq ?? 0), segments: Number(first?.seq ?? 0) };
  });
}

/** Does all that the log has to do; it then goes on until nothing can be pruned any more. */
export async function prune(log: TestLog): Promise<number> {
  await settle(log);
  // A log at rest has no alarm: one more commit has it look again.
  await log.append(entries(1));
  await settle(log);
  return (await prunedTo(log)).seq;
}

const commitments = { tool: { $commitment: "ab".repeat(32) }, args: { $commitment: "cd".repeat(32) } };

/** Entries of each form. */
export function mixedEntries(): Record<string, unknown>[] {
  return [
    entry({ id: "digits", action: { tool: "t", args: { n: 1e21, text: "é😀\u2028\u0001", empty: "" } } }),
    entry({ id: "commitments", action: commitments }),
    entry({ id: "some", action: { ...commitments, tool: "named" } }),
    entry({ id: "long-tool", action: { tool: "x".repeat(500), args: null } }),
    entry({
      id: "outcome",
      kind: "tool.call.completed",
      session: "s",
      action: { tool: "t" },
      outcome: { status: "failure", error: "why" },
    }),
    entry({
      id: "empty-outcome",
      kind: "tool.call.completed",
      action: { tool: { $commitment: "ab".repeat(32) } },
      outcome: { status: "unknown" },
    }),
    entry({ id: "large", action: { tool: "t", args: "あ".repeat(320_000) } }),
    entry({ id: "secret-all", run: "run-2", action: { tool: "tool-secret-1", args: "args-secret-1" } }),
    entry({ id: "secret-args", action: { tool: "tool-kept-2", args: "args-secret-2" } }),
    entry({ id: "secret-tool", action: { tool: "tool-secret-3", args: "args-kept-3" } }),
    entry({ id: "late-all", action: { tool: "tool-late-1", args: "args-late-1" } }),
    entry({ id: "late-args", action: { tool: "tool-kept-late", args: "args-late-2" } }),
  ];
}

/**
 * A log of 900 entries with every form, erased before and after its content was sealed, that was not pruned yet. The
 * entries that `mixedEntries` names are the first ones.
 */
export async function mixedLog(log: TestLog): Promise<Record<string, unknown>[]> {
  stopPruning();
  const sent = mixedEntries();
  const answer = await log.append(sent);
  if (answer.status !== 201) throw new Error(answer.text);
  for (let i = 0; i < 5; i++) await log.append(entries(1));
  await must(erase(log, { ids: ["secret-all"] }));
  await must(erase(log, { ids: ["secret-args"], fields: ["action.args"] }));
  await must(erase(log, { ids: ["secret-tool"], fields: ["action.tool"] }));
  for (const count of [3, 110, 64, 1, 205, 130, 270, 100]) await log.append(entries(count));
  await settle(log);
  await must(erase(log, { ids: ["late-all"] }));
  await must(erase(log, { ids: ["late-args"], fields: ["action.args"] }));
  await settle(log);
  return sent;
}

async function must(work: ReturnType<typeof erase>): Promise<void> {
  const { status, text } = await work;
  if (status !== 200) throw new Error(text);
}

/** What a reader is answered, on every way there is. */
export async function answers(log: TestLog): Promise<Record<string, unknown>> {
  const paths = [
    "/head",
    "/checkpoint",
    "/verify",
    "/export?anchors=false",
    "/entries/1?proof=true",
    "/entries/300?proof=true",
    "/runs/run-2",
    "/tile/0/000",
    "/tile/entries/000",
    "/tile/entries/000.p/7",
    "/tile/entries/001",
    "/tile/entries/002.p/255",
    "/proof/inclusion?seq=2",
    "/proof/consistency?from=100",
  ];
  const out: Record<string, unknown> = {};
  for (const path of paths) {
    const { status, text } = await log.get(path);
    out[path] = [status, text];
  }
  for (let from: number | null = 1; from !== null; ) {
    const { status, body } = await log.get(`/entries?from=${from}&limit=300`);
    const page = body.entries as unknown as { seq: number }[];
    out[`/entries from ${from}`] = [status, page];
    from = page.length === 300 ? (page.at(-1)?.seq ?? 0) + 1 : null;
  }
  return out;
}

/** Takes all of the log out of D1, as the operator does; the next reader has it filled again. */
export async function emptyIndexOf(log: TestLog): Promise<void> {
  const path = `/v1/tenants/${log.tenant.id}/principals/${log.name}/reindex`;
  const { status, text } = await call(env.RUNSEAL_OPERATOR_TOKEN, "POST", path);
  if (status >= 300) throw new Error(text);
}

/** Reads until D1 is filled again. */
export async function readUntilFilled(log: TestLog): Promise<void> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const { status, text } = await log.get("/entries?limit=1");
    if (status === 200) return;
    if (status !== 503) throw new Error(text);
  }
  throw new Error("D1 is not filled again");
}

/** All that D1 holds of the log, without what D1 itself gave it: the log's short number, and places of arrival. */
export async function indexOf(log: TestLog): Promise<string[]> {
  const own = "FROM logs l JOIN entries t ON t.log = l.log WHERE l.tenant = ? AND l.name = ? ORDER BY t.seq";
  const rows: string[] = [];
  for (const query of [
    `SELECT t.*, CAST(t.recorded_at AS TEXT) AS recorded_at ${own}`,
    "SELECT t.* FROM logs l JOIN runs t ON t.log = l.log WHERE l.tenant = ? AND l.name = ? ORDER BY t.run",
    "SELECT * FROM logs WHERE tenant = ? AND name = ?",
  ]) {
    const { results } = await env.DB.prepare(query).bind(log.tenant.id, log.name).all();
    for (const { log: _log, entry: _entry, pos: _pos, ...row } of results) rows.push(JSON.stringify(row));
  }
  return rows;
}

/** All text that the log's object and D1 hold, and that its readers are answered. */
export async function textOf(log: TestLog): Promise<string> {
  const stored = await log.inside((state) =>
    state.storage.sql
      .exec("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\'")
      .toArray()
      .map(({ name }) => JSON.stringify(state.storage.sql.exec(`SELECT * FROM ${name}`).toArray())),
  );
  const { results } = await env.DB.prepare("SELECT id, kind, tool, content FROM entries").all();
  const answered: string[] = [];
  for (const path of ["/entries?limit=1000", "/export", "/runs/run-1"]) {
    const answer = await log.get(path);
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${answer.text.slice(0, 200)}`);
    answered.push(answer.text);
  }
  return [...stored, JSON.stringify(results), ...answered].join("\n");
}
