import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Answer } from "../../support/client.ts";
import { startServerProcess, type TestServer, temporaryFolder } from "../../support/server.ts";
import { createTenant, LoadedLog, newEntry, patiently, type Tenant } from "../faults/load.ts";
import { copyPart, removeIndex } from "../faults/state-files.ts";

const CLI = join(dirname(fileURLToPath(import.meta.url)), "../../../cli/runseal.ts");
const POLICY = '{"rules":{"side_effects":{"read_only":"allow"}}}';
const SPEC = '{"name":"read","side_effect":"read_only"}';
const SPEC_HASH = "15251a19bff7c994857fe7746ad9f680f35c64a29b8c643c249182ad17334e84";
let server: TestServer;
let tenant: Tenant;
let restoreLogs: () => void;
/** Mirrored beyond the copy; never touched after the copy; appended to after the copy, but not mirrored. */
const [rewound, still, gap] = ["rewound", "still", "gap"].map((name) => new LoadedLog(name)) as [
  LoadedLog,
  LoadedLog,
  LoadedLog,
];

const client = () => server.client(tenant.key);
const problemOf = (answer: Answer) =>
  answer.json<{ type: string }>().type.replace("urn:runseal:problem:", "");

/** An entry that the log is to expect. */
function newEntryOf(log: LoadedLog): Record<string, unknown> {
  const entry = newEntry();
  log.sent.add(String(entry.id));
  return entry;
}

async function append(log: LoadedLog, count: number, query = ""): Promise<void> {
  const entries = Array.from({ length: count }, newEntry);
  expect(await log.append(client, entries, query, () => false)).toBe(true);
}

// One story, in this order: each start of a server costs seconds.
describe("a log's files replaced by an older copy", () => {
  beforeAll(async () => {
    server = await startServerProcess();
    tenant = await createTenant(server);
    await append(rewound, 10, "?wait=mirrored");
    await append(still, 2, "?wait=mirrored");
    await append(gap, 7, "?wait=mirrored");
    await server.stop();
    restoreLogs = copyPart(server, "logs", join(temporaryFolder(), "logs"));
    server = await server.restart();
    await append(rewound, 5, "?wait=mirrored");
    const answer = await client().post(`${gap.path}/entries`, newEntry());
    // Killed at once, before the mirror can have followed.
    await server.killTree();
    expect(answer.json<{ mirrored_size: number }>().mirrored_size).toBe(7);
    restoreLogs();
    server = await server.restart();
  });

  it("give way to what D1 and R2 hold, where a later head was mirrored: never another history", async () => {
    const answers = [
      await client().post(`${rewound.path}/entries`, newEntryOf(rewound)),
      await client().get(`${rewound.path}/head`),
    ];
    expect(answers.map(({ status }) => status)).toEqual([201, 200]);
    rewound.told.take((answers[0] as Answer).text);
    expect((await rewound.check(client(), tenant)).size).toBe(16);
    // It comes by the log's alarm.
    await vi.waitFor(async () => {
      const system = await client().get("/v1/principals/$system/entries?limit=1000");
      expect(system.text).toContain('"log.refilled"');
    }, 20_000);
  });

  it("change no other log", async () => {
    await append(still, 2);
    expect((await still.check(client(), tenant)).size).toBe(4);
  });

  it("into the gap after the mirrored head: the heads that were called mirrored stay true", async () => {
    await append(gap, 1);
    // Of the head of 8 entries that the answer before the kill had, the answer said that it was not mirrored.
    expect([...gap.told.heads.keys()]).toEqual([7, 8]);
    expect((await gap.check(client(), tenant)).size).toBe(8);
  });
});

describe("D1's files replaced by an older copy", () => {
  const later = new LoadedLog("only-later");

  it("queries say so, and then hold everything again", async () => {
    await server.stop();
    const restoreIndex = copyPart(server, "index", join(temporaryFolder(), "index"));
    server = await server.restart();
    await append(still, 30);
    await append(later, 4);
    for (const log of [still, later]) expect((await client().get(`${log.path}/entries`)).status).toBe(200);
    await server.stop();
    restoreIndex();
    server = await server.restart();
    for (const log of [still, later]) {
      const answer = await client().get(`${log.path}/entries`);
      // Never a page that is short: the log's own alarm may have been there first, and then it is whole.
      if (answer.status === 200) {
        const { entries } = answer.json<{ entries: unknown[] }>();
        expect([log.path, entries.length]).toEqual([log.path, log === still ? 34 : 4]);
        continue;
      }
      expect([log.path, answer.status, answer.headers.get("retry-after")]).toEqual([log.path, 503, "1"]);
      expect(problemOf(answer)).toBe("index-rebuilding");
    }
    await append(still, 5);
    expect((await still.check(client(), tenant)).size).toBe(39);
    expect((await later.check(client(), tenant)).size).toBe(4);
  });
});

describe("D1's files gone", () => {
  it("are made again by the operator's command, and no page is short before", async () => {
    const before = await allOf();
    await client().send("PUT", "/v1/policies/team", { body: POLICY });
    await client().send("PUT", `/v1/tools/${SPEC_HASH}`, { body: SPEC });
    const sources = await sourcesOf();
    await server.stop();
    removeIndex(server);
    server = await server.restart();
    const answer = await client().get("/v1/entries?limit=1000");
    // The logs' own alarms may have been there first: then a page is whole.
    if (answer.status === 200) expect(idsOf(answer.text)).toEqual(before);
    else expect([answer.status, problemOf(answer)]).toEqual([503, "index-rebuilding"]);
    const { stdout } = await promisify(execFile)(process.execPath, [CLI, "rebuild-index"], {
      env: { ...process.env, RUNSEAL_URL: server.url, RUNSEAL_OPERATOR_TOKEN: server.operatorToken },
    });
    expect(stdout).toMatch(/^the index holds \d+ logs of 1 tenants again\n/);
    expect(await allOf()).toEqual(before);
    expect(await sourcesOf()).toEqual(sources);
    for (const log of [rewound, still, gap]) await log.check(client(), tenant);
  });

  /** The policy and the tool spec, as they are answered. */
  async function sourcesOf(): Promise<string[]> {
    const answers = [
      await client().get("/v1/policies/team?version=1"),
      await client().get(`/v1/tools/${SPEC_HASH}`),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    return answers.map(({ text }) => text);
  }

  /** Ids of the tenant's entries, sorted: the order in which they arrive is another one. */
  async function allOf(): Promise<string[]> {
    return idsOf((await patiently(client(), "/v1/entries?limit=1000")).text);
  }

  function idsOf(page: string): string[] {
    const { entries } = JSON.parse(page) as { entries: { id: string; kind: string }[] };
    return entries.flatMap(({ id, kind }) => (kind.startsWith("tool.") ? [id] : [])).sort();
  }
});

describe("both a log's files and D1's replaced by older copies", () => {
  it("stop the log where neither has what was mirrored, until the operator recovers it", async () => {
    await server.stop();
    const folder = temporaryFolder();
    const restore = [
      copyPart(server, "logs", join(folder, "logs")),
      copyPart(server, "index", join(folder, "index")),
    ];
    server = await server.restart();
    await append(rewound, 5, "?wait=mirrored");
    await server.stop();
    for (const one of restore) one();
    server = await server.restart();
    const answers = [
      await client().post(`${rewound.path}/entries`, newEntry()),
      await client().post(`${rewound.path}/entries?wait=mirrored`, [newEntry(), newEntry()]),
      await client().get(`${rewound.path}/head`),
      await client().get(`${rewound.path}/checkpoint`),
      await client().get(`${rewound.path}/entries`),
      await client().get(`${rewound.path}/verify`),
      await client().get(`${rewound.path}/export`),
      await client().get(`${rewound.path}/proof/consistency?from=10`),
    ];
    for (const answer of answers) expect([answer.status, problemOf(answer)]).toEqual([503, "log-stopped"]);
    await append(still, 1);

    const path = `/v1/tenants/${await tenantId()}/principals/rewound`;
    const operator = server.client(server.operatorToken);
    const standing = (await operator.get(`${path}/log`)).json<{ state: string; generation: number }>();
    expect(standing).toMatchObject({ state: "stopped", generation: 1 });
    const recovered = await operator.post(`${path}/recover`, { generation: 1, reason: "both were restored" });
    expect(recovered.status).toBe(200);
    const next = new LoadedLog("rewound");
    await append(next, 4);
    const { text } = await patiently(client(), `${next.path}/entries`);
    const kinds = (JSON.parse(text) as { entries: { kind: string }[] }).entries.map(({ kind }) => kind);
    expect(kinds).toEqual(["log.recovered", ...Array<string>(4).fill("tool.call.started")]);
    const old = await patiently(client(), `${next.path}/verify?generation=1`);
    expect(JSON.parse(old.text)).toMatchObject({ verdict: "intact" });
  });

  /** The tenant's id, from the log's origin. */
  async function tenantId(): Promise<string> {
    const { text } = await client().get(`${still.path}/checkpoint`);
    return /\/t\/([0-9a-f]{32})\//.exec(text)?.[1] ?? "";
  }

  afterAll(async () => {
    await server.stop();
  });
});
