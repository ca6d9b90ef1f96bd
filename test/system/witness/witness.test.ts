import { execFile } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import type { VerifyReport } from "../../../shared/api/schemas.ts";
import { fromHex } from "../../../shared/bytes.ts";
import { parseCheckpointText } from "../../../shared/note/checkpoint.ts";
import { openNote } from "../../../shared/note/signed-note.ts";
import { formatVkey, logKey, parseVkey, witnessKey } from "../../../shared/note/vkey.ts";
import { startServerProcess, type TestServer, temporaryFolder } from "../../support/server.ts";
import { describeWithShared, readSharedJson } from "../../support/shared-files.ts";
import { createTenant, newEntry, type Tenant } from "../faults/load.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../..", import.meta.url).href);

interface Witnesses {
  size: number;
  misconfigured: string | null;
  witnesses: { name: string; outcome: string | null; cosigned_size: number; failures: number }[];
  alarms: unknown[];
}

/** A witness that nobody runs. */
const ANOTHER = formatVkey(
  witnessKey(nativeCrypto, "away.example", nativeCrypto.signer(new Uint8Array(32).fill(3)).publicKey),
);

let witness: TestServer;
beforeAll(async () => {
  witness = await startServerProcess();
});
afterAll(async () => {
  await witness.stop();
});

const textOf = async (server: TestServer, path: string) => (await server.client().get(path)).text.trim();
const operator = (server: TestServer) => server.client(server.operatorToken);

describe("one Runseal as the witness of another", () => {
  let log: TestServer;
  let tenant: Tenant;

  const states = async () => (await operator(log).get("/v1/witnesses")).json<Witnesses>();
  async function until(holds: (now: Witnesses) => boolean): Promise<Witnesses> {
    for (;;) {
      const now = await states();
      if (holds(now)) return now;
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }
  const watch = async (vkeys: string[]) => {
    const origin = (await textOf(log, "/log/key")).split("+")[0];
    expect(
      (await operator(witness).send("PUT", "/v1/witnessed-logs", { body: { origin, vkeys } })).status,
    ).toBe(200);
  };

  beforeAll(async () => {
    const one = { name: "other", url: `${witness.url}/`, vkey: await textOf(witness, "/witness/key") };
    const away = { ...one, name: "away", url: "http://127.0.0.1:9", vkey: ANOTHER };
    log = await startServerProcess(undefined, { env: { RUNSEAL_WITNESSES: JSON.stringify([one, away]) } });
    tenant = await createTenant(log);
  });
  afterAll(async () => {
    await log.stop();
  });

  it("is refused by a witness that does not know the log, and says so", async () => {
    const { witnesses, misconfigured } = await until(
      (now) => now.witnesses[0]?.outcome !== null && now.witnesses[1]?.outcome !== null,
    );
    expect(misconfigured).toBeNull();
    expect(witnesses.map(({ name, outcome }) => [name, outcome])).toEqual([
      ["other", "unknown-log"],
      ["away", "unreachable"],
    ]);
    expect((await textOf(log, "/log/checkpoint")).match(/^— /gm)).toHaveLength(1);
  });

  it("is cosigned once the witness knows it, on the checkpoint that anyone gets", async () => {
    await watch([await textOf(log, "/log/key")]);
    await until((now) => now.witnesses[0]?.cosigned_size === now.size);
    const note = (await log.client().get("/log/checkpoint")).text;
    const keys = [await textOf(log, "/log/key"), await textOf(witness, "/witness/key")];
    const opened = openNote(
      nativeCrypto,
      note,
      keys.map((vkey) => parseVkey(nativeCrypto, vkey)),
    );
    expect(opened.verified.map(({ timestamp }) => timestamp !== null)).toEqual([false, true]);
    const { size } = parseCheckpointText(opened.text);
    // It goes on from there: the next head is cosigned with a consistency proof.
    await log.client(tenant.key).post("/v1/principals/agent/entries", [newEntry(), newEntry()]);
    await until((now) => now.size > size && now.witnesses[0]?.cosigned_size === now.size);
    const [mine] = (await operator(witness).get("/v1/witnessed-logs")).json<{
      logs: { latest: { size: number } }[];
    }>().logs;
    expect(mine?.latest.size).toBeGreaterThan(size);
  });

  it("shows in an export, offline, what the witness saw and when; a stranger's key shows nothing", async () => {
    const folder = temporaryFolder();
    const verify = async (vkey: string) => {
      writeFileSync(join(folder, "witnesses.txt"), `# trusted\n${vkey}\n`);
      const args = [
        "runseal",
        "verify",
        "agent.bundle",
        "--registry",
        tenant.registryId,
        "--witnesses",
        "witnesses.txt",
      ];
      const { stdout } = await run("npx", [...args, "--json"], { cwd: folder });
      return JSON.parse(stdout) as VerifyReport;
    };
    for (const name of ["dist", "package.json", "node_modules"])
      symlinkSync(join(root, name), join(folder, name));
    const vkey = await textOf(witness, "/witness/key");
    for (;;) {
      const { text } = await log.client(tenant.key).get("/v1/principals/agent/export");
      writeFileSync(join(folder, "agent.bundle"), text);
      const report = await verify(vkey);
      expect([report.verdict, report.issues]).toEqual(["intact", []]);
      const [seen] = report.freshness?.witnessed ?? [];
      // Heads reach the tenant's log, the service's, and the witness, some seconds after one another.
      if (seen?.size === 2) {
        expect(seen.witness).toBe(parseVkey(nativeCrypto, vkey).name);
        expect(report.trusted.join()).toContain("2 entries were there at");
        // The service finds the same in it, without what it has stored.
        const query = `registry=${tenant.registryId}&witnesses=${encodeURIComponent(`${vkey}\n${ANOTHER}`)}`;
        const uploaded = await log.client(tenant.key).post(`/v1/verify?${query}`, text);
        expect(uploaded.json<VerifyReport>()).toMatchObject({
          verdict: "intact",
          freshness: { witnessed: report.freshness?.witnessed },
        });
        break;
      }
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    const stranger = await verify(ANOTHER);
    expect([stranger.verdict, stranger.freshness?.witnessed]).toEqual(["intact", []]);
    expect(stranger.not_checked?.join()).toContain("the keys of their witnesses were not given");
  });

  it("remembers its cosignatures over a restart, and raises no alarm", async () => {
    const before = await states();
    await log.stop();
    log = await log.restart();
    const after = await states();
    expect(after.witnesses[0]?.cosigned_size).toBeGreaterThanOrEqual(before.witnesses[0]?.cosigned_size ?? 1);
    expect(after.alarms).toEqual([]);
  });
});

describeWithShared("litewitness' requests", "vectors/extracted/litewitness-add-checkpoint.json", () => {
  interface Vector {
    origin: string;
    log_key: string;
    request: string;
    status_litewitness: number;
    assert_: string;
  }

  it("are answered over HTTP in their sequence as litewitness does, an unknown log with C2SP's 404", async () => {
    const { requests } = readSharedJson<{ requests: Vector[] }>(
      "vectors/extracted/litewitness-add-checkpoint.json",
    );
    for (const { origin, log_key } of requests) {
      const hex = /^ed25519 pub hex ([0-9a-f]{64})$/.exec(log_key)?.[1];
      const vkey = hex === undefined ? log_key : formatVkey(logKey(nativeCrypto, origin, fromHex(hex)));
      const body = { origin, vkeys: [vkey] };
      expect((await operator(witness).send("PUT", "/v1/witnessed-logs", { body })).status).toBe(200);
    }
    const statuses: number[] = [];
    for (const { request, assert_ } of requests) {
      const answer = await witness
        .client()
        .post("/add-checkpoint", request, { "content-type": "text/plain" });
      statuses.push(answer.status);
      if (answer.status === 409) expect(assert_).toBe(`body == "${answer.text.replace("\n", "\\n")}"`);
    }
    expect(statuses).toEqual(
      requests.map(({ status_litewitness, assert_ }) => {
        // The wrong signature has base64 with bits beyond its end, which Go overlooks and we do not.
        if (assert_.includes("invalid signature")) return 400;
        return assert_.includes("unknown log") ? 404 : status_litewitness;
      }),
    );
  });
});
