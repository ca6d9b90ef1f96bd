import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { executes, isRunning, killAll, processTree, waitFor } from "../../support/process-tree.ts";
import { startCommand, startServerProcess } from "../../support/server.ts";

function startOn(stateDir: string) {
  return startCommand("start", { args: ["--no-demo", "--port", "0", "--state", stateDir] });
}

describe("the state folder's lock", () => {
  it("refuses a second server with 2, naming the first, which goes on", async () => {
    const first = await startServerProcess();
    const second = startOn(first.stateDir);
    expect(await second.ended).toBe(2);
    expect(second.output()).toContain(`in use by process ${first.pid}`);
    expect((await first.client().get("/healthz")).status).toBe(200);
    expect(first.workerd()).toHaveLength(1);
    expect(readFileSync(join(first.stateDir, "lock"), "utf8")).toContain(`"pid":${first.pid},`);
  });

  it("is taken over from a server that was killed", async () => {
    const first = await startServerProcess();
    await first.killTree();
    const second = await first.restart();
    expect(readFileSync(join(first.stateDir, "lock"), "utf8")).toContain(`"pid":${second.pid},`);
  });

  it("is taken over where another process has the pid by now", async () => {
    const first = await startServerProcess();
    await first.stop();
    const holder = { pid: process.pid, identity: "a boot/a start", run: "x", since: "2026-01-01T00:00:00Z" };
    writeFileSync(join(first.stateDir, "lock"), JSON.stringify(holder));
    await first.restart();
  });

  it("is taken over where a power cut left it empty", async () => {
    const first = await startServerProcess();
    await first.stop();
    writeFileSync(join(first.stateDir, "lock"), "");
    await first.restart();
  });
});

describe("a workerd whose server was killed", () => {
  it("is ended by the guard at once", async () => {
    const server = await startServerProcess();
    const tree = processTree(server.pid);
    expect(server.workerd()).toHaveLength(1);
    process.kill(server.pid, "SIGKILL");
    await waitFor(() => !tree.some(isRunning), "workerd and the guard to end");
    await server.restart();
  });

  it("is found and ended by the next start where the guard was killed too", async () => {
    const server = await startServerProcess();
    const workerd = server.workerd();
    expect(workerd).toHaveLength(1);
    const guard = processTree(server.pid).filter((pid) => pid !== server.pid && executes(pid, "node"));
    expect(guard).toHaveLength(1);
    await killAll([...guard, server.pid]);
    expect(workerd.every(isRunning)).toBe(true);

    const next = await server.restart();
    expect(workerd.some(isRunning)).toBe(false);
    expect(next.output()).toContain("left behind");
    expect((await next.client().get("/healthz")).status).toBe(200);
  });

  it("is left alone by the start of a server on another folder", async () => {
    const one = await startServerProcess();
    const other = await startServerProcess();
    expect((await one.client().get("/healthz")).status).toBe(200);
    process.kill(other.pid, "SIGKILL");
    await waitFor(() => !isRunning(other.pid), "the other server to end");
    await other.restart();
    expect((await one.client().get("/healthz")).status).toBe(200);
  });
});

describe("a secret that others can read", () => {
  it("stops the start with 2 and tells how to mend it", async () => {
    const first = await startServerProcess();
    await first.stop();
    const file = join(first.stateDir, "master-key");
    chmodSync(file, 0o640);
    const second = startOn(first.stateDir);
    expect(await second.ended).toBe(2);
    expect(second.output()).toContain(`chmod 600 '${file}'`);
    expect(existsSync(join(first.stateDir, "lock"))).toBe(false);
  });
});
