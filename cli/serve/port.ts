/**
 * The port of the embedded server.
 *
 * @module
 */
import { createServer } from "node:net";
import { ServeError } from "./errors.ts";

export const DEFAULT_PORT = 8787;

/** Whether the port can be listened on now. Rejects where the address itself can't be used. */
function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(false);
      else
        reject(
          new ServeError("port-in-use", `Can't listen on ${host}:${port}: ${error.code ?? error.message}.`),
        );
    });
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** The sentence for a port that somebody else has. */
export function portInUse(host: string, port: number): ServeError {
  return new ServeError(
    "port-in-use",
    `Port ${port} on ${host} is in use by another program. Stop that one, or choose another port with --port N.`,
  );
}

/**
 * The port to listen on: the one asked for, or else 8787, or else 0 for any free one.
 *
 * @param asked 0 asks for any free port; undefined leaves the choice
 * @throws ServeError `port-in-use` where the one asked for is taken
 */
export async function choosePort(host: string, asked: number | undefined): Promise<number> {
  if (asked === 0) return 0;
  if (await isFree(host, asked ?? DEFAULT_PORT)) return asked ?? DEFAULT_PORT;
  if (asked === undefined) return 0;
  throw portInUse(host, asked);
}
