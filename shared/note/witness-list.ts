/**
 * The witnesses that somebody trusts, as a text: the vkey of one on each line. Blank lines and those that begin with `#`
 * are passed over.
 *
 * @module
 */
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";
import type { NoteKey } from "./vkey.ts";
import { parseVkey, SIGNATURE_TYPES } from "./vkey.ts";

/** Far more than a head has. */
export const MAX_WITNESSES = 100;

/**
 * Their keys, each once.
 *
 * @throws `RunsealError("bad-vkey")` that names the line: for what is no vkey, for another key than one of timestamped
 * cosignatures (type 0x04), for two keys that a signature could not tell apart, and for too many
 */
export function parseWitnessList(crypto: CryptoPort, text: string): NoteKey[] {
  const keys = new Map<string, { readonly vkey: string; readonly key: NoteKey }>();
  for (const [index, line] of text.split("\n").entries()) {
    const vkey = line.trim();
    if (vkey === "" || vkey.startsWith("#")) continue;
    const refuse = (why: string): never => {
      throw new RunsealError("bad-vkey", `line ${index + 1}: ${why}`);
    };
    let key: NoteKey;
    try {
      key = parseVkey(crypto, vkey);
    } catch (error) {
      if (!(error instanceof RunsealError)) throw error;
      return refuse(error.message);
    }
    if (key.type !== SIGNATURE_TYPES.cosignature) return refuse("not the key of a witness (type 0x04)");
    const id = `${key.name} ${key.keyId}`;
    const before = keys.get(id);
    if (before !== undefined && before.vkey !== vkey) return refuse("another key has its name and key id");
    if (keys.size >= MAX_WITNESSES && before === undefined)
      return refuse(`more than ${MAX_WITNESSES} witnesses`);
    keys.set(id, { vkey, key });
  }
  return [...keys.values()].map(({ key }) => key);
}
