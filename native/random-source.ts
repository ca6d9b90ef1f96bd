/**
 * Random bytes in small pieces, drawn from the platform in blocks: a call for each salt would take longer than its hash.
 *
 * @module
 */

/** Bytes drawn at once; the platform gives at most 65,536. */
const BLOCK_BYTES = 32_768;

/** Answers so many bytes that nobody else gets, as a window on a block that is not to be written to. */
export function randomSource(): (count: number) => Uint8Array {
  let block = new Uint8Array();
  let at = 0;
  return (count) => {
    if (at + count > block.length) {
      block = crypto.getRandomValues(new Uint8Array(Math.max(BLOCK_BYTES, count)));
      at = 0;
    }
    at += count;
    return block.subarray(at - count, at);
  };
}
