/**
 * Entry bundles (c2sp.org/tlog-tiles, "Log entries"): up to 256 log entries, each after its length as a big-endian
 * uint16. The entries of bundle N are those whose leaf hashes are in the level 0 tile N.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import { TILE_WIDTH } from "./tiles.ts";

const LENGTH_BYTES = 2;
/** The longest entry that a bundle can hold. */
export const MAX_BUNDLE_ENTRY_BYTES = 0xffff;

function bad(message: string): RunsealError {
  return new RunsealError("bad-bundle", message);
}

function checkCount(count: number): void {
  if (count < 1 || count > TILE_WIDTH) throw bad("a bundle has 1 to 256 entries");
}

/**
 * The bundle of these entries, 1 to 256 of them, each at most 65,535 bytes.
 *
 * @throws `RunsealError("bad-bundle")`
 */
export function encodeEntryBundle(entries: readonly Uint8Array[]): Uint8Array {
  checkCount(entries.length);
  const length = entries.reduce((sum, entry) => sum + LENGTH_BYTES + entry.length, 0);
  const out = new Uint8Array(length);
  const view = new DataView(out.buffer);
  let at = 0;
  for (const entry of entries) {
    if (entry.length > MAX_BUNDLE_ENTRY_BYTES) throw bad("an entry is longer than 65,535 bytes");
    view.setUint16(at, entry.length);
    out.set(entry, at + LENGTH_BYTES);
    at += LENGTH_BYTES + entry.length;
  }
  return out;
}

/**
 * The entries of a bundle: windows on its bytes, not copies.
 *
 * @param width how many there must be; without it, 1 to 256
 * @throws `RunsealError("bad-bundle")` where the bytes are cut short or the number is another
 */
export function decodeEntryBundle(bundle: Uint8Array, width?: number): Uint8Array[] {
  const view = new DataView(bundle.buffer, bundle.byteOffset, bundle.byteLength);
  const out: Uint8Array[] = [];
  for (let at = 0; at < bundle.length; ) {
    const start = at + LENGTH_BYTES;
    if (start > bundle.length) throw bad("the bundle is cut short");
    at = start + view.getUint16(at);
    if (at > bundle.length) throw bad("the bundle is cut short");
    out.push(bundle.subarray(start, at));
    checkCount(out.length);
  }
  checkCount(out.length);
  if (width !== undefined && out.length !== width)
    throw bad("the bundle has more or fewer entries than it should");
  return out;
}
