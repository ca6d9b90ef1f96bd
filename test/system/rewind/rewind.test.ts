import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Answer } from "../../support/client.ts";
import { startServerProcess, type TestServer, temporaryFolder } from "../../support/server.ts";
import { createTenant, LoadedLog, newEntry, type Tenant } from "../faults/load.ts";
import { copyPart } from "../faults/state-files.ts";

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

  it("stop the log where a later head was mirrored: never another history", async () => {
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
  });

  it("stop no other log", async () => {
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
      expect([log.path, answer.status, answer.headers.get("retry-after")]).toEqual([log.path, 503, "1"]);
      expect(problemOf(answer)).toBe("index-rebuilding");
    }
    await append(still, 5);
    expect((await still.check(client(), tenant)).size).toBe(39);
    expect((await later.check(client(), tenant)).size).toBe(4);
  });

  afterAll(async () => {
    await server.stop();
  });
});
