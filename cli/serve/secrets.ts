/**
 * The two secrets of an embedded server, made on the first start and kept in the state folder with mode 0600.
 *
 * `master-key` wraps the tenants' private keys: without it nothing can be signed any more. `operator-token` creates
 * tenants; RUNSEAL_OPERATOR_TOKEN in the environment goes before the file, and is not written down.
 *
 * @module
 */
import { randomBytes, randomUUID } from "node:crypto";
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { ServeError } from "./errors.ts";
import { hasStorage } from "./state-dir.ts";

export interface Secrets {
  readonly operatorToken: string;
  /** The file that holds the operator token; null where it was given. */
  readonly operatorTokenFile: string | null;
  /** 32 bytes of lower-case hex. */
  readonly masterKey: string;
}

/** Text of an owner-only file, or undefined where there is none. Throws ServeError `secret` where others can read it. */
function readSecret(path: string): string | undefined {
  let mode: number;
  try {
    mode = statSync(path).mode;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  if (process.platform !== "win32" && (mode & 0o077) !== 0) {
    throw new ServeError(
      "secret",
      `${path} can be read by other users. Run: chmod 600 '${path}' (and make new keys if somebody else has read it).`,
    );
  }
  return readFileSync(path, "utf8").trim();
}

/** Writes the file whole or not at all: a half-written key would lock the owner out. */
function writeSecret(path: string, text: string): void {
  const draft = `${path}.${randomUUID()}`;
  const file = openSync(draft, "wx", 0o600);
  try {
    writeSync(file, `${text}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(draft, path);
}

function loadMasterKey(stateDir: string): string {
  const path = join(stateDir, "master-key");
  const kept = readSecret(path);
  if (kept !== undefined) {
    if (/^[0-9a-f]{64}$/.test(kept)) return kept;
    throw new ServeError("secret", `${path} does not hold 64 hexadecimal digits. Restore it from a backup.`);
  }
  if (hasStorage(stateDir)) {
    throw new ServeError(
      "secret",
      `${path} is missing, but ${stateDir} holds logs whose keys only it opens. Restore it from a backup.`,
    );
  }
  const made = randomBytes(32).toString("hex");
  writeSecret(path, made);
  return made;
}

function loadOperatorToken(stateDir: string, given: string | undefined): Omit<Secrets, "masterKey"> {
  if (given !== undefined && given !== "") {
    if (/^[\x21-\x7e]+$/.test(given)) return { operatorToken: given, operatorTokenFile: null };
    throw new ServeError(
      "secret",
      "RUNSEAL_OPERATOR_TOKEN may hold printable ASCII characters only, and no spaces.",
    );
  }
  const path = join(stateDir, "operator-token");
  const kept = readSecret(path);
  if (kept !== undefined && kept !== "") return { operatorToken: kept, operatorTokenFile: path };
  const made = `rso_${randomBytes(32).toString("base64url")}`;
  writeSecret(path, made);
  return { operatorToken: made, operatorTokenFile: path };
}

/**
 * Reads the secrets, and makes those that are missing. Call it only while the folder's lock is held.
 *
 * @param given the operator token from the environment or the caller; empty counts as absent
 * @throws ServeError `secret`
 */
export function loadSecrets(stateDir: string, given: string | undefined): Secrets {
  return { masterKey: loadMasterKey(stateDir), ...loadOperatorToken(stateDir, given) };
}
