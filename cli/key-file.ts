/**
 * Key files: a private key that the service never sees, in a file that its owner alone can read.
 *
 * @module
 */
import { randomBytes } from "node:crypto";
import { open, readFile, stat } from "node:fs/promises";
import { nativeCrypto } from "../native/crypto.ts";
import { fromHex, toHex } from "../shared/bytes.ts";
import type { Signer } from "../shared/crypto/port.ts";
import { UsageError } from "./command.ts";

const FORMAT = "key.v1";

/** Makes a key and its file, with mode 0600; answers the public key, hex. Throws `UsageError`: a file is never replaced. */
export async function makeKeyFile(path: string): Promise<string> {
  const seed = randomBytes(32);
  const publicKey = toHex(nativeCrypto.signer(seed).publicKey);
  const text = `${JSON.stringify({ runseal: FORMAT, public_key: publicKey, seed: toHex(seed) })}\n`;
  seed.fill(0);
  try {
    const file = await open(path, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
  } catch (error) {
    const exists = error instanceof Error && "code" in error && error.code === "EEXIST";
    throw new UsageError(`${path}: ${exists ? "it exists, and is left as it is" : "it can't be written"}`);
  }
  return publicKey;
}

/** The key in a file. Throws `UsageError`, also where others can read the file. */
export async function readKeyFile(path: string): Promise<Signer> {
  let text: string;
  try {
    const { mode } = await stat(path);
    if (process.platform !== "win32" && (mode & 0o077) !== 0) {
      throw new UsageError(`${path}: other users can read it. Run: chmod 600 '${path}'`);
    }
    text = await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${path}: it can't be read`);
  }
  try {
    const file = JSON.parse(text) as { runseal?: unknown; public_key?: unknown; seed?: unknown };
    if (file.runseal === FORMAT) {
      const signer = nativeCrypto.signer(fromHex(String(file.seed), 32));
      if (toHex(signer.publicKey) === file.public_key) return signer;
    }
  } catch {
    // Below.
  }
  throw new UsageError(`${path}: it is no key file`);
}
