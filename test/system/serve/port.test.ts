import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { startCommand, startServerProcess, temporaryFolder } from "../../support/server.ts";

const taken: Server[] = [];

/** Listens on the port; resolves to it, also where another program has it already. */
function occupy(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(port);
      else reject(error);
    });
    server.listen(port, "127.0.0.1", () => {
      taken.push(server);
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
  });
}

afterEach(async () => {
  for (const server of taken.splice(0)) await new Promise((resolve) => server.close(resolve));
});

describe("the port", () => {
  it("is the one asked for", async () => {
    const port = await occupy(0);
    await new Promise((resolve) => taken.pop()?.close(resolve));
    const server = await startServerProcess(undefined, { args: ["--port", String(port)] });
    expect(server.url).toBe(`http://127.0.0.1:${port}`);
    expect((await server.client().get("/healthz")).status).toBe(200);
  });

  it("that was asked for and is taken stops the start with 2 and a sentence", async () => {
    const port = await occupy(0);
    const stateDir = join(temporaryFolder(), "state");
    const command = startCommand("start", {
      args: ["--no-demo", "--port", String(port), "--state", stateDir],
    });
    expect(await command.ended).toBe(2);
    expect(command.output()).toContain(`Port ${port} on 127.0.0.1 is in use`);
    expect(command.output()).not.toContain("    at ");
  });

  it("is another free one, and the output says so, where 8787 is taken and none was asked for", async () => {
    await occupy(8787);
    const stateDir = join(temporaryFolder(), "state");
    const command = startCommand("start", { args: ["--no-demo", "--state", stateDir] });
    let url: string | undefined;
    void command.ended.then(() => {
      url ??= "none";
    });
    while (url === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      url = /^Runseal is at (\S+)\n/m.exec(command.output())?.[1];
    }
    expect(command.output()).toContain("Port 8787 is in use by another program");
    expect(url).not.toContain(":8787");
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });
});
