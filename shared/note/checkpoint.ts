// PROVISIONAL stand-in so that the service runs before the real one lands: overwrite it.
import { concat, equalBytes, fromBase64, toBase64, utf8 } from "../bytes.ts";
import type { CryptoPort, Signer } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";
export interface Checkpoint {
  readonly origin: string;
  readonly size: number;
  readonly root: Uint8Array;
}
function keyId(crypto: CryptoPort, name: string, key: Uint8Array): Uint8Array {
  return crypto.sha256(concat(utf8(`${name}\n`), new Uint8Array([1]), key)).subarray(0, 4);
}
export function signCheckpoint(
  crypto: CryptoPort,
  name: string,
  signers: readonly Signer[],
  c: Checkpoint,
): string {
  const text = `${c.origin}\n${c.size}\n${toBase64(c.root)}\n`;
  return `${text}\n${signers.map((s) => `— ${name} ${toBase64(concat(keyId(crypto, name, s.publicKey), s.sign(utf8(text))))}\n`).join("")}`;
}
export function parseCheckpoint(note: string): { checkpoint: Checkpoint } {
  const [origin = "", size = "", root = ""] = note.split("\n");
  return { checkpoint: { origin, size: Number(size), root: fromBase64(root) } };
}
export function openCheckpoint(
  crypto: CryptoPort,
  note: string,
  name: string,
  keys: readonly Uint8Array[],
): { checkpoint: Checkpoint; keys: Uint8Array[] } {
  const [text = "", sigs = ""] = note.split("\n\n");
  const good = keys.filter((key) =>
    sigs.split("\n").some((line) => {
      const sig = fromBase64(line.split(" ")[2] ?? "");
      return (
        equalBytes(sig.subarray(0, 4), keyId(crypto, name, key)) &&
        crypto.verifyEd25519(key, utf8(`${text}\n`), sig.subarray(4))
      );
    }),
  );
  if (good.length === 0) throw new RunsealError("unverified-note", "no signature verifies");
  return { ...parseCheckpoint(note), keys: good };
}
