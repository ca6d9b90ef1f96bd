import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { queryRunFacts, queryRunInLog } from "../../workers/index-db/audits.ts";
import { queryForVerify, queryLog } from "../../workers/index-db/entries.ts";
import { entryNumber } from "../../workers/index-db/entry-number.ts";
import type { TestTenant } from "./support.ts";
import { call, entries, newTenant } from "./support.ts";

const NAMES = ["a", "b", "c", "d"];
const COUNT = 3;
/** Sequence numbers that no log has, up to the highest that a request may name. */
const BEYOND = [
  2 ** 32 - 1,
  2 ** 32,
  2 ** 32 + 1,
  2 ** 33 - 1,
  2 ** 33,
  2 ** 33 + 2,
  Number.MAX_SAFE_INTEGER,
];

interface IndexedLog {
  readonly log_id: string;
  readonly name: string;
}

let tenant: TestTenant;
/** In the order of their numbers in D1. */
let logs: IndexedLog[];

beforeAll(async () => {
  tenant = await newTenant();
  for (const name of NAMES) {
    await call(tenant.key, "POST", `/v1/principals/${name}/entries`, entries(COUNT));
    expect((await call(tenant.key, "GET", `/v1/principals/${name}/entries`)).status).toBe(200);
  }
  const { results } = await env.DB.prepare(
    "SELECT log_id, name FROM logs WHERE tenant = ? AND name NOT LIKE '$%' ORDER BY log",
  )
    .bind(tenant.id)
    .all<IndexedLog>();
  logs = results;
  expect(results.map(({ name }) => name)).toEqual(NAMES);
});

const session = () => env.DB.withSession("first-primary");

/** The sequence numbers of what a query finds. */
type Ask = (log: IndexedLog, beyond: number) => Promise<readonly number[]>;
const seqs = (rows: readonly { readonly seq: number }[]): number[] => rows.map(({ seq }) => seq);
const own = (from: number): number[] => Array.from({ length: COUNT + 1 - from }, (_, i) => from + i);

const QUERIES: [string, Ask, readonly number[]][] = [
  [
    "of a log's entries",
    async ({ log_id }, to) => seqs((await queryLog(session(), log_id, { to }, 0, 100)).rows),
    own(1),
  ],
  [
    "of a log's entries from one on",
    async ({ log_id }, to) => seqs((await queryLog(session(), log_id, { from: 2, to }, 0, 100)).rows),
    own(2),
  ],
  [
    "of a log's entries from beyond its end",
    async ({ log_id }, from) => seqs((await queryLog(session(), log_id, { from }, 0, 100)).rows),
    [],
  ],
  [
    "of a log's entries after one beyond its end",
    async ({ log_id }, after) => seqs((await queryLog(session(), log_id, {}, after, 100)).rows),
    [],
  ],
  [
    "for a verification",
    async ({ log_id }, to) => seqs((await queryForVerify(session(), log_id, 2, to, 100)).rows),
    own(2),
  ],
  [
    "of a run's facts",
    async ({ log_id }, last_seq) =>
      seqs(
        (await queryRunFacts(session(), log_id, "run-1", { first_seq: 1, last_seq }, "read_file", 0, 100))
          .rows,
      ),
    own(1),
  ],
  [
    "for the audit of a run, from beyond the log's end",
    async ({ log_id }, after) =>
      seqs((await queryRunInLog(session(), log_id, "run-1", [], after, Number.MAX_SAFE_INTEGER, 100)).rows),
    [],
  ],
];

describe("a query never reaches into the next log, whatever sequence number it is asked for", () => {
  it.each(QUERIES)("%s", async (_name, ask, expected) => {
    for (const log of logs) {
      for (const beyond of BEYOND) {
        expect([log.name, beyond, await ask(log, beyond)]).toEqual([log.name, beyond, expected]);
      }
    }
  });

  it("over HTTP", async () => {
    for (const { name } of logs) {
      const get = (path: string) => call(tenant.key, "GET", `/v1/principals/${name}${path}`);
      for (const beyond of BEYOND) {
        for (const [path, expected] of [
          [`/entries?to=${beyond}`, own(1)],
          [`/entries?from=2&to=${beyond}`, own(2)],
          [`/entries?from=2&to=${beyond}&run=run-1`, own(2)],
          [`/entries?from=${beyond}`, []],
          [`/entries?from=${beyond}&to=${Number.MAX_SAFE_INTEGER}`, []],
        ] as const) {
          const { status, body } = await get(path);
          expect([path, status, seqs(body.entries as unknown as { seq: number }[])]).toEqual([
            path,
            200,
            expected,
          ]);
        }
        expect((await get(`/entries/${beyond}`)).status).toBe(404);
        const { body } = await get(`/verify?to=${beyond}`);
        expect(body).toMatchObject({ verdict: "intact", checked: COUNT });
      }
    }
  });
});

describe("the number of an entry", () => {
  it("is within its log's, and in the order of the sequence numbers", async () => {
    const places = [0, 1, 2 ** 31, 2 ** 32 - 2, ...BEYOND];
    for (const log of [0, 1, 2, 3, 1_000_000]) {
      for (const seq of places) {
        // The number is bound, as queries bind it.
        const { results } = await env.DB.prepare(
          `SELECT ${entryNumber("?1", "?2")} >> 32 AS log, ${entryNumber("?1", "?2")} & 4294967295 AS seq`,
        )
          .bind(log, seq)
          .all();
        expect(results).toEqual([{ log, seq: Math.min(seq, 2 ** 32 - 1) }]);
      }
    }
  });
});
