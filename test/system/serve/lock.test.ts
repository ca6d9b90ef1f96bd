import { chmodSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { executes, isRunning, killAll, processTree, waitFor } from "../../support/process-tree.ts";
import { startCommand, startServerProcess } from "../../support/server.ts";

/** Text of the newest file of the lock. */
function lockText(stateDir: string): string {
  return readFileSync(lockFile(stateDir), "utf8");
}

function lockFile(stateDir: string): string {
  const newest = Math.max(...readdirSync(join(stateDir, "lock")).map(Number));
  return join(stateDir, "lock", String(newest));
}

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
    expect(lockText(first.stateDir)).toContain(`"pid":${first.pid},`);
  });
});

describe("a workerd whose server was killed", () => {
  it("is ended by the guard at once", async () => {
    const server = await startServerProcess();
    const tree = processTree(server.pid);
    expect(server.workerd()).toHaveLength(1);
    process.kill(server.pid, "SIGKILL");
    await waitFor(() => !tree.some(isRunning), "workerd and the guard to end");
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
    const workerd = one.workerd();
    await startServerProcess();
    expect(one.workerd()).toEqual(workerd);
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
    expect(lockText(first.stateDir)).toBe("released\n");
  });
});
