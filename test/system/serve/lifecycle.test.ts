import { once } from "node:events";
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isRunning, killAll, processTree, waitFor } from "../../support/process-tree.ts";
import { startCommand, startServerProcess, type TestServer, temporaryFolder } from "../../support/server.ts";

interface TenantAnswer {
  readonly api_key: string;
}

async function createTenant(server: TestServer): Promise<string> {
  const answer = await server.client(server.operatorToken).post("/v1/tenants", { name: "a tenant" });
  expect(answer.status).toBe(201);
  return answer.json<TenantAnswer>().api_key;
}

async function keyWorks(server: TestServer, key: string): Promise<boolean> {
  return (await server.client(key).get("/v1/principals")).status === 200;
}

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

describe("the embedded server", () => {
  it("keeps its state and its secrets between starts", async () => {
    const first = await startServerProcess();
    const key = await createTenant(first);
    expect(await keyWorks(first, key)).toBe(true);
    expect(await keyWorks(first, `${key}x`)).toBe(false);
    const masterKey = readFileSync(join(first.stateDir, "master-key"), "utf8");
    expect(await first.stop()).toBe(0);

    const second = await first.restart();
    expect(second.operatorToken).toBe(first.operatorToken);
    expect(readFileSync(join(first.stateDir, "master-key"), "utf8")).toBe(masterKey);
    expect(await keyWorks(second, key)).toBe(true);
    await createTenant(second);
  });

  it("takes over from one that was killed with everything at once, and has what that one acknowledged", async () => {
    const first = await startServerProcess();
    const key = await createTenant(first);
    await first.killTree();
    const second = await first.restart();
    expect(await keyWorks(second, key)).toBe(true);
    expect(filesUnder(join(first.stateDir, "lock"))).toEqual([join(first.stateDir, "lock", "2")]);
  });

  it.each(["d1", "d1/miniflare-D1DatabaseObject"])(
    "makes its database anew where storage/%s was removed, and finds the entries again",
    async (removed) => {
      const first = await startServerProcess();
      const key = await createTenant(first);
      const entries = Array.from({ length: 3 }, (_, i) => ({
        id: `e-${i}`,
        kind: "run.started",
        run: "r",
        action: {},
      }));
      expect((await first.client(key).post("/v1/principals/p/entries", entries)).status).toBe(201);
      const idsFrom = async (path: string, server: TestServer) => {
        // A read over the whole tenant fills a part of the index, and is 503 until all is there.
        for (;;) {
          const answer = await server.client(key).get(path);
          if (answer.status !== 503) {
            return answer.json<{ entries: { id: string }[] }>().entries.map(({ id }) => id);
          }
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      };
      expect(await idsFrom("/v1/principals/p/entries", first)).toEqual(["e-0", "e-1", "e-2"]);
      await first.stop();
      rmSync(join(first.stateDir, "storage", removed), { recursive: true });
      const second = await first.restart();
      expect(await idsFrom("/v1/principals/p/entries", second)).toEqual(["e-0", "e-1", "e-2"]);
      expect(await idsFrom("/v1/entries?kind=run.started", second)).toEqual(["e-0", "e-1", "e-2"]);
      await createTenant(second);
    },
  );

  it("stops at Ctrl-C with 0 and leaves nothing behind", async () => {
    const server = await startServerProcess();
    const tree = processTree(server.pid);
    expect(server.workerd()).toHaveLength(1);
    server.signal("SIGINT");
    expect(await server.ended).toBe(0);
    await waitFor(() => !tree.some(isRunning), "its processes to end");
    const locks = filesUnder(join(server.stateDir, "lock")).map((file) => readFileSync(file, "utf8"));
    expect(locks).toEqual(["released\n"]);
  });

  it("gives its owner alone the folder and everything in it, and writes no secret to its output", async () => {
    const server = await startServerProcess();
    const key = await createTenant(server);
    expect(statSync(server.stateDir).mode & 0o777).toBe(0o700);
    const files = filesUnder(server.stateDir);
    for (const name of ["master-key", "operator-token", "lock/1"])
      expect(files).toContain(join(server.stateDir, name));
    expect(files.length).toBeGreaterThan(6);
    for (const file of files) expect.soft(statSync(file).mode & 0o077, file).toBe(0);

    await server.stop();
    const masterKey = readFileSync(join(server.stateDir, "master-key"), "utf8").trim();
    expect(masterKey).toMatch(/^[0-9a-f]{64}$/);
    expect(server.output()).toContain("operator-token");
    for (const secret of [server.operatorToken, masterKey, key])
      expect(server.output()).not.toContain(secret);
  });

  it("takes the operator token from the environment, and does not write it down", async () => {
    const token = "given-token-4a1d";
    const server = await startServerProcess(undefined, { env: { RUNSEAL_OPERATOR_TOKEN: token } });
    const asGiven = await server.client(token).post("/v1/tenants", { name: "a tenant" });
    expect(asGiven.status).toBe(201);
    const other = await server.client(`${token}x`).post("/v1/tenants", { name: "a tenant" });
    expect(other.status).toBe(401);
    expect(server.output()).not.toContain(token);
    const files = filesUnder(server.stateDir).filter((file) => !file.includes("/storage/"));
    expect(files).not.toContain(join(server.stateDir, "operator-token"));
    for (const file of files) expect.soft(readFileSync(file, "utf8"), file).not.toContain(token);
  });

  it("goes on at the same address when workerd crashes", async () => {
    const server = await startServerProcess();
    const key = await createTenant(server);
    const crashed = server.workerd();
    await killAll(crashed);
    await waitFor(() => server.workerd().length === 1, "a new workerd");
    let works = false;
    for (let tries = 0; !works && tries < 300; tries += 1) {
      works = await keyWorks(server, key).catch(() => false);
      if (!works) await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(works).toBe(true);
    expect(server.output()).toContain("crashed unexpectedly");
  });
});

describe("a body that does not arrive whole", () => {
  it("is the sender's affair: 400, and no part of the service is said to be away", async () => {
    const server = await startServerProcess();
    const key = await createTenant(server);
    const send = async (path: string, header: string, body: string, breaks: "off" | "its chunks") => {
      const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n${header}\r\n\r\n${body}`,
      );
      if (breaks === "off") socket.end();
      const [answer] = (await once(socket.setEncoding("utf8"), "data")) as [string];
      socket.destroy();
      return answer.split("\r\n")[0];
    };
    const chunked = "Transfer-Encoding: chunked";
    expect([
      await send("/v1/principals/p/entries", chunked, "zz\r\n{}\r\n0\r\n\r\n", "its chunks"),
      await send("/v1/principals/p/entries", "Content-Length: 100", '{"id":', "off"),
      await send("/v1/verify", chunked, "10\r\nabc", "off"),
    ]).toEqual(Array(3).fill("HTTP/1.1 400 Bad Request"));
    expect(server.output()).not.toContain("unavailable");
  });
});

describe("npm start", () => {
  it.each(["SIGTERM", "SIGKILL"] as const)("takes the server with it when npm gets %s", async (signal) => {
    const server = await startServerProcess(undefined, { npm: true });
    const tree = processTree(server.pid);
    expect(server.workerd()).toHaveLength(1);
    server.signal(signal);
    expect(await server.ended).toBe(signal === "SIGTERM" ? 0 : "SIGKILL");
    await waitFor(() => !tree.some(isRunning), "the server to end");
    const locks = filesUnder(join(server.stateDir, "lock")).map((file) => readFileSync(file, "utf8"));
    expect(locks).toEqual(["released\n"]);
  });

  it("answers an unknown flag with the usage and 2", async () => {
    const command = startCommand("start", { args: ["--prot", "1"] });
    expect(await command.ended).toBe(2);
    expect(command.output()).toContain("--prot");
    expect(command.output()).toContain("Usage: npm start");
    expect(command.output()).not.toContain("    at ");
  });

  it("refuses a folder that holds something else, and leaves it as it is", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "letter.txt"), "dear");
    chmodSync(folder, 0o755);
    const command = startCommand("start", { args: ["--no-demo", "--state", folder] });
    expect(await command.ended).toBe(2);
    expect(command.output()).toContain("holds other files");
    expect(readdirSync(folder)).toEqual(["letter.txt"]);
    expect(statSync(folder).mode & 0o777).toBe(0o755);
  });
});
