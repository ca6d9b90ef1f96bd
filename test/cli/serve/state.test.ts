import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { acquireLock } from "../../../cli/serve/lock.ts";
import { processIdentity } from "../../../cli/serve/processes.ts";
import { loadSecrets } from "../../../cli/serve/secrets.ts";
import { prepareStateDir, storageDir } from "../../../cli/serve/state-dir.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "runseal-state-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function mode(path: string): number {
  return statSync(path).mode & 0o777;
}

describe("the secrets", () => {
  it("are made once, each in a file for its owner alone", () => {
    const first = loadSecrets(folder, undefined);
    expect(first.masterKey).toMatch(/^[0-9a-f]{64}$/);
    expect(first.operatorToken).toMatch(/^rso_[A-Za-z0-9_-]{43}$/);
    expect(first.operatorTokenFile).toBe(join(folder, "operator-token"));
    expect(mode(join(folder, "master-key"))).toBe(0o600);
    expect(mode(join(folder, "operator-token"))).toBe(0o600);
    expect(loadSecrets(folder, "")).toEqual(first);
  });

  it("differ from folder to folder", () => {
    const other = join(folder, "other");
    mkdirSync(other);
    const [a, b] = [loadSecrets(folder, undefined), loadSecrets(other, undefined)];
    expect(a.masterKey).not.toBe(b.masterKey);
    expect(a.operatorToken).not.toBe(b.operatorToken);
  });

  it("take the operator token that is given, and keep the file's", () => {
    const kept = loadSecrets(folder, undefined);
    expect(loadSecrets(folder, "given")).toEqual({
      masterKey: kept.masterKey,
      operatorToken: "given",
      operatorTokenFile: null,
    });
    expect(loadSecrets(folder, undefined)).toEqual(kept);
  });

  it.each(["a b", "a\n", "é"])(
    "refuse a token that no header can carry, %j, without repeating it",
    (token) => {
      expect(() => loadSecrets(folder, token)).toThrow(
        expect.objectContaining({ code: "secret", message: expect.not.stringContaining(token) }),
      );
    },
  );

  it.each([
    ["master-key", 0o640],
    ["master-key", 0o604],
    ["operator-token", 0o660],
  ])("refuse %s with the mode %o, and name the remedy", (name, bits) => {
    const secrets = loadSecrets(folder, undefined);
    const file = join(folder, name);
    chmodSync(file, bits);
    expect(() => loadSecrets(folder, undefined)).toThrow(
      expect.objectContaining({ code: "secret", message: expect.stringContaining(`chmod 600 '${file}'`) }),
    );
    chmodSync(file, 0o600);
    expect(loadSecrets(folder, undefined)).toEqual(secrets);
  });

  it("are not replaced where the master key is gone or damaged but logs are there", () => {
    loadSecrets(folder, undefined);
    mkdirSync(storageDir(folder));
    const file = join(folder, "master-key");
    writeFileSync(file, "half of it");
    expect(() => loadSecrets(folder, undefined)).toThrow(expect.objectContaining({ code: "secret" }));
    expect(readFileSync(file, "utf8")).toBe("half of it");
    rmSync(file);
    expect(() => loadSecrets(folder, undefined)).toThrow(
      expect.objectContaining({ code: "secret", message: expect.stringContaining("missing") }),
    );
    expect(existsSync(file)).toBe(false);
  });
});

describe("the state folder", () => {
  it("is made with its parents, for its owner alone", () => {
    const path = join(folder, "a", "b");
    prepareStateDir(path);
    expect(mode(path)).toBe(0o700);
  });

  it("is closed to others where it was open", () => {
    const path = join(folder, "state");
    prepareStateDir(path);
    loadSecrets(path, undefined);
    chmodSync(path, 0o755);
    prepareStateDir(path);
    expect(mode(path)).toBe(0o700);
  });

  it("keeps its name when it moves, and a copy has another", () => {
    const path = join(folder, "state");
    const name = prepareStateDir(path);
    cpSync(path, join(folder, "copy"), { recursive: true });
    expect(prepareStateDir(join(folder, "copy"))).not.toBe(name);
    renameSync(path, join(folder, "moved"));
    expect(prepareStateDir(join(folder, "moved"))).toBe(name);
  });

  it("is refused where it is a file, or holds something else, which stays as it is", () => {
    const file = join(folder, "file");
    writeFileSync(file, "text");
    expect(() => prepareStateDir(file)).toThrow(expect.objectContaining({ code: "state-dir" }));
    chmodSync(folder, 0o755);
    expect(() => prepareStateDir(folder)).toThrow(
      expect.objectContaining({ code: "state-dir", message: expect.stringContaining("other files") }),
    );
    expect(mode(folder)).toBe(0o755);
  });
});

describe("the lock", () => {
  const gone = { pid: 2 ** 22 + 1, identity: "any", run: "r", since: "s" };

  function writeLock(number: number, text: string): void {
    mkdirSync(join(folder, "lock"), { recursive: true });
    writeFileSync(join(folder, "lock", String(number)), text);
  }

  it("is held until it is released, and then free again", async () => {
    const lock = await acquireLock(folder);
    await expect(acquireLock(folder)).rejects.toMatchObject({
      code: "locked",
      message: expect.stringContaining(`process ${process.pid} `),
    });
    lock.release();
    const next = await acquireLock(folder);
    expect(next.run).not.toBe(lock.run);
    // A release that comes late must not free what another start holds by then.
    lock.release();
    await expect(acquireLock(folder)).rejects.toMatchObject({ code: "locked" });
  });

  it.each([
    ["a process that is gone", JSON.stringify(gone)],
    ["a pid that another process has by now", JSON.stringify({ ...gone, pid: process.pid })],
    ["a power cut that left nothing of it", ""],
    ["a power cut that left half of it", JSON.stringify(gone).slice(0, 20)],
  ])("is taken over from %s, under a new number", async (_name, text) => {
    writeLock(7, text);
    await acquireLock(folder);
    expect(readdirSync(join(folder, "lock"))).toEqual(["8"]);
    expect(JSON.parse(readFileSync(join(folder, "lock", "8"), "utf8"))).toMatchObject({ pid: process.pid });
  });

  it("waits for a holder that is about to write its name", async () => {
    writeLock(7, "");
    const attempt = acquireLock(folder);
    writeLock(7, JSON.stringify({ ...gone, pid: process.pid, identity: processIdentity(process.pid) }));
    await expect(attempt).rejects.toMatchObject({ code: "locked" });
    expect(readdirSync(join(folder, "lock"))).toEqual(["7"]);
  });

  it("goes to one alone of many that find a stale one", async () => {
    writeLock(1, JSON.stringify(gone));
    const results = await Promise.allSettled(Array.from({ length: 20 }, () => acquireLock(folder)));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });
});

describe("the identity of a process", () => {
  it("is the same each time, and another for another process", () => {
    const mine = processIdentity(process.pid);
    expect(mine).toBeTruthy();
    expect(processIdentity(process.pid)).toBe(mine);
    expect(processIdentity(process.ppid)).not.toBe(mine);
    expect(processIdentity(2 ** 22 + 1)).toBeUndefined();
  });
});
