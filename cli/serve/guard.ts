/**
 * A small process that outlives the server by a moment. Its standard input is a pipe that the server holds open and
 * never writes to: when the server ends, in whatever way (SIGKILL included), the kernel closes the pipe, and the guard
 * kills the workerd that was left behind. Without it an orphan would keep the port and the storage.
 *
 * Usage: `node guard.ts OWNER`, with OWNER as in processes.ts.
 *
 * @module
 */
import { setTimeout as delay } from "node:timers/promises";
import { killWorkerd } from "./processes.ts";

/** A workerd that was being started when the server died shows its environment only after its exec. */
const LOOKS_AT_MS = [0, 100, 400, 1500];

const owner = process.argv[2];
if (owner !== undefined && /^\d+:\d+:[0-9a-f-]{36}$/.test(owner)) {
  // The signals of a terminal or a service manager are meant for the server; its end is what counts here.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
  process.stdin.resume();
  process.stdin.once("close", async () => {
    for (const wait of LOOKS_AT_MS) {
      await delay(wait);
      await killWorkerd(owner);
    }
  });
} else {
  process.exitCode = 2;
}
