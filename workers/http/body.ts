/**
 * Reads a request's body up to a limit, whether or not Content-Length tells the truth.
 *
 * @module
 */
import { Problem } from "./problem.ts";

/** The body's bytes. Throws a 413 problem beyond the limit, without having read further. */
export async function readBody(request: Request, limit: number): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  if (declared !== null && Number(declared) > limit) throw tooLarge(limit);
  if (request.body === null) return new Uint8Array();
  // HTTP ends a body where its declared length does: then it can be taken whole, in one call.
  if (declared !== null) return wholeBody(request, limit);
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader: ReadableStreamDefaultReader<Uint8Array> = request.body.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch(unreadable);
    if (done) break;
    length += value.length;
    if (length > limit) {
      // The rest of the body is not ours to read; an error while letting it go changes nothing.
      await reader.cancel().catch(() => {});
      throw tooLarge(limit);
    }
    chunks.push(value);
  }
  const [only] = chunks;
  if (chunks.length === 1 && only !== undefined) return only;
  const out = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    out.set(chunk, at);
    at += chunk.length;
  }
  return out;
}

async function wholeBody(request: Request, limit: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(await request.arrayBuffer().catch(unreadable));
  if (bytes.length > limit) throw tooLarge(limit);
  return bytes;
}

/**
 * Throws what reading a body failed with. Where the connection is what was lost, the sender's is meant: it broke off,
 * or its chunks are malformed. That is its own affair, and no part of the service is away.
 */
export function unreadable(error: unknown): never {
  if (!(error instanceof Error) || !error.message.startsWith("Network connection lost")) throw error;
  throw new Problem("invalid-request", {
    pointer: "",
    detail: "the body broke off, or its chunks are malformed",
  });
}

function tooLarge(limit: number): Problem {
  return new Problem("batch-too-large", { detail: `the body is larger than ${limit} bytes` });
}
