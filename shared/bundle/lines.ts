/**
 * Splits a bundle's bytes into lines, as they arrive, in bounded memory. Bytes that are not UTF-8 cost only their line:
 * the strict reader refuses it, and the verdict names it.
 *
 * @module
 */
import { decodeUtf8 } from "../json/utf8.ts";
import { MAX_LINE_CHARS } from "./format.ts";

const LINE_FEED = 0x0a;
/** Bytes of a line that are kept: one more character than a line may have, whatever its bytes are. */
const MAX_KEPT = 3 * (MAX_LINE_CHARS + 1);

export class LineSplitter {
  #parts: Uint8Array[] = [];
  #kept = 0;

  /** The lines that end in these bytes, without their line feeds. */
  *push(bytes: Uint8Array): Generator<string> {
    let start = 0;
    for (let end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, start)) {
      this.#keep(bytes.subarray(start, end));
      yield this.#take();
      start = end + 1;
    }
    // The caller may use its buffer again.
    this.#keep(bytes.slice(start));
  }

  /** What follows the last line feed; empty where nothing does. */
  end(): string {
    return this.#take();
  }

  #keep(bytes: Uint8Array): void {
    // Of a line that is too long no more is kept than shows that it is.
    const part = bytes.subarray(0, MAX_KEPT - this.#kept);
    if (part.length === 0) return;
    this.#parts.push(part);
    this.#kept += part.length;
  }

  #take(): string {
    const [first, ...more] = this.#parts;
    let whole = first ?? new Uint8Array();
    if (more.length > 0) {
      whole = new Uint8Array(this.#kept);
      let at = 0;
      for (const part of this.#parts) {
        whole.set(part, at);
        at += part.length;
      }
    }
    this.#parts = [];
    this.#kept = 0;
    return decodeUtf8(whole).text;
  }
}
