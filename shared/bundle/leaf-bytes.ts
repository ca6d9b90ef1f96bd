/**
 * Decodes the leaves of a bundle, one after the other, into one buffer: most of the work of a verifier is here, and an
 * array made for each leaf would be most of that.
 *
 * @module
 */

import { decodeBase64Into } from "../bytes.ts";
import { MAX_LEAF_BYTES } from "../entry/limits.ts";
import { LEAF_PREFIX } from "../merkle/hash.ts";

/** What a runtime with Node's Buffer has for base64, several times faster than ours. */
interface NativeWindow {
  write(text: string, offset: number, length: number, encoding: "base64"): number;
  toString(encoding: "base64", start: number, end: number): string;
}
interface NativeRuntime {
  readonly Buffer?: { from(buffer: ArrayBuffer): NativeWindow };
}

/** Characters of a leaf at the limit. */
const MAX_CHARS = Math.ceil(MAX_LEAF_BYTES / 3) * 4;

export class LeafBytes {
  readonly #bytes = new Uint8Array(1 + MAX_LEAF_BYTES + 3);
  readonly #native: NativeWindow | undefined;

  constructor() {
    this.#bytes[0] = LEAF_PREFIX;
    this.#native = (globalThis as NativeRuntime).Buffer?.from(this.#bytes.buffer);
  }

  /**
   * The leaf in standard base64, behind the byte that its hash takes in front of it: a view that holds until the next
   * call. Null where it is over the limit, or the text is not base64 in its canonical form.
   */
  decode(text: string): Uint8Array | null {
    if (text.length > MAX_CHARS) return null;
    const end =
      this.#native === undefined
        ? decodeBase64Into(text, this.#bytes, 1)
        : this.#decodeNative(this.#native, text);
    return end < 0 ? null : this.#bytes.subarray(0, end);
  }

  #decodeNative(native: NativeWindow, text: string): number {
    const end = 1 + native.write(text, 1, MAX_LEAF_BYTES + 3, "base64");
    // Buffer skips what is no base64: only the canonical text is given back by the bytes.
    return native.toString("base64", 1, end) === text ? end : -1;
  }
}
