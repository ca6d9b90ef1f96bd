/**
 * Reads a request's body line by line, in bounded memory.
 *
 * @module
 */
import { MAX_LINE_CHARS } from "../../shared/bundle/format.ts";
import { unreadable } from "./body.ts";
import { Problem } from "./problem.ts";

/** The body's lines without their line feeds. Throws a 413 problem beyond the limit, 400 for bad UTF-8. */
export async function* lines(request: Request, limit: number): AsyncGenerator<string> {
  if (request.body === null) return;
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const reader: ReadableStreamDefaultReader<Uint8Array> = request.body.getReader();
  let bytes = 0;
  // Parts of the line that is not over yet. Joined once: to search a long line again for each chunk is quadratic.
  let parts: string[] = [];
  let chars = 0;
  for (;;) {
    const { done, value } = await reader.read().catch(unreadable);
    bytes += value?.length ?? 0;
    if (bytes > limit || chars > MAX_LINE_CHARS) {
      await reader.cancel().catch(() => {});
      throw new Problem("batch-too-large", {
        detail: `the body is larger than ${limit} bytes, or one of its lines is`,
      });
    }
    let text: string;
    try {
      text = done ? decoder.decode() : decoder.decode(value, { stream: true });
    } catch {
      throw new Problem("json-syntax", { pointer: "", detail: "the body is not UTF-8" });
    }
    const [more = "", ...begun] = text.split("\n");
    parts.push(more);
    chars += more.length;
    const last = begun.pop();
    if (last !== undefined) {
      yield parts.join("");
      yield* begun;
      parts = [last];
      chars = last.length;
    }
    if (done) break;
  }
  if (chars > 0) yield parts.join("");
}
