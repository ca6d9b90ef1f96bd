/**
 * docs/anchoring.md as a reader follows it: its shell blocks run in order, as they stand, against a server and a time
 * stamping authority of the test's own.
 */
import { execFile, execFileSync } from "node:child_process";
import { readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServerProcess, type TestServer, temporaryFolder } from "../../support/server.ts";
import { createTenant, newEntry, type Tenant } from "../faults/load.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../..", import.meta.url).href);
const page = readFileSync(join(root, "docs", "anchoring.md"), "utf8");
const blocks = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map((match) => match[1] ?? "");
const block = (word: string): string => {
  const found = blocks.filter((text) => text.includes(word));
  if (found.length !== 1) throw new Error(`${found.length} blocks with ${word}`);
  return found[0] ?? "";
};

let server: TestServer;
let tenant: Tenant;
let authority: Server;
let folder: string;
let env: Record<string, string>;

async function shell(script: string): Promise<string> {
  const { stdout } = await run("bash", ["-e", "-o", "pipefail", "-c", script], { cwd: folder, env });
  return stdout;
}
const append = (count: number) =>
  server.client(tenant.key).post("/v1/principals/agent/entries", Array.from({ length: count }, newEntry));

/** An authority with a certificate of its own, over HTTP as RFC 3161 section 3.4 has it. */
function startAuthority(dir: string): Server {
  const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: dir, stdio: "pipe" });
  writeFileSync(
    join(dir, "tsa.cnf"),
    [
      "[req]\ndistinguished_name=dn\nprompt=no\nx509_extensions=ext\n[dn]\nCN=Test TSA",
      "[ext]\nextendedKeyUsage=critical,timeStamping\nkeyUsage=critical,digitalSignature",
      "[tsa]\ndefault_tsa=one\n[one]\nserial=serial\nsigner_cert=tsa.pem\nsigner_key=tsa.key\nsigner_digest=sha256",
      "default_policy=1.2.3.4\ndigests=sha256\nordering=no\ness_cert_id_chain=no\n",
    ].join("\n"),
  );
  const key = ["-newkey", "rsa:2048", "-nodes", "-keyout", "tsa.key", "-out", "tsa.pem"];
  openssl("req", "-x509", "-config", "tsa.cnf", "-days", "2", ...key);
  writeFileSync(join(dir, "serial"), "01\n");
  return createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    writeFileSync(join(dir, "query.tsq"), Buffer.concat(chunks));
    openssl("ts", "-reply", "-config", "tsa.cnf", "-queryfile", "query.tsq", "-out", "reply.tsr");
    response.setHeader("content-type", "application/timestamp-reply");
    response.end(readFileSync(join(dir, "reply.tsr")));
  }).listen(0, "127.0.0.1");
}

beforeAll(async () => {
  server = await startServerProcess();
  tenant = await createTenant(server);
  folder = temporaryFolder();
  for (const name of ["dist", "package.json", "node_modules"])
    symlinkSync(join(root, name), join(folder, name));
  const dir = temporaryFolder();
  authority = startAuthority(dir);
  await new Promise((resolve) => authority.once("listening", resolve));
  env = {
    PATH: process.env.PATH ?? "",
    HOME: folder,
    RUNSEAL_URL: server.url,
    RUNSEAL_API_KEY: tenant.key,
    TSA_URL: `http://127.0.0.1:${(authority.address() as AddressInfo).port}/`,
    TSA_CA: join(dir, "tsa.pem"),
  };
  await append(3);
});

afterAll(async () => {
  authority.close();
  await server.stop();
});

describe("docs/anchoring.md", () => {
  it("keeps a head and checks it, also after the log went on", async () => {
    expect(await shell(block("runseal head"))).toMatch(/^head: 3:[0-9a-f]{64}\ncheckpoint of 3 entries/);
    expect((await shell(block("runseal verify"))).match(/^intact: 3 entries/gm)).toHaveLength(2);
    await append(2);
    const again = await shell(block("runseal verify"));
    expect([again.match(/^intact: 5 entries/gm)?.length, again.includes("kept head: 3 matches")]).toEqual([
      2,
      true,
    ]);
  });

  it("keeps it in a git repository", async () => {
    await shell(block("git init"));
    const kept = await shell('git -C heads show "$(cat agent.receipt)":agent.checkpoint');
    expect(kept).toBe(readFileSync(join(folder, "agent.checkpoint"), "utf8"));
  });

  it("has it time-stamped, and tells a changed one", async () => {
    await shell(block("openssl ts"));
    const verify = 'openssl ts -verify -data other -in agent.tsr -CAfile "$TSA_CA"';
    await expect(shell(`sed 's/3/4/' agent.checkpoint > other; ${verify}`)).rejects.toThrow();
    await shell(`cp agent.checkpoint other; ${verify}`);
    rmSync(join(folder, "other"));
  });

  it("tells the service, which lists it with its lag", async () => {
    const [taken, listed] = (await shell(block("rawfile"))).split("}{");
    expect(`${taken}}`).toContain('"result":"advanced"');
    expect(listed).toContain('"where":"the auditor"');
    const again = await shell(block("rawfile"));
    expect(again).toContain('"result":"unchanged"');
    for (;;) {
      // The head reaches the log of heads some seconds after the append.
      const { logs } = (await server.client(tenant.key).get("/v1/anchors")).json<{
        logs: { principal: string; size: number; lag_entries: number }[];
      }>();
      const log = logs.find(({ principal, size }) => principal === "agent" && size === 5);
      if (log !== undefined) {
        expect(log.lag_entries).toBe(2);
        break;
      }
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    const [result, ...logs] = (await shell(block("runseal anchors"))).trimEnd().split("\n");
    expect(result).toBe("unchanged: a head of 3 entries");
    expect(logs).toContainEqual(
      expect.stringMatching(/^agent: 5 entries, 2 after the anchor of 3, [0-9]+ s ago: the auditor$/),
    );
    await expect(shell("npx runseal anchors list --max-lag 1 --principal agent")).rejects.toMatchObject({
      code: 1,
    });
    const other = "npx runseal anchors add agent.checkpoint --tenant-log --where x";
    await expect(shell(other)).rejects.toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^rejected \(other-log\): /),
    });
  });
});
