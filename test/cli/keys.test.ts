import { chmodSync, mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { UsageError } from "../../cli/command.ts";
import { keysCommand } from "../../cli/commands/keys.ts";
import { readKeyFile } from "../../cli/key-file.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { fromHex, toBase64, toHex } from "../../shared/bytes.ts";
import { encodeRecord, OPS, ROLES } from "../../shared/registry/record.ts";
import { signedMessage } from "../../shared/signing.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "runseal-keys-"));
});

async function run(positionals: string[], values: Record<string, string> = {}) {
  const out: string[] = [];
  const notes: string[] = [];
  const code = await keysCommand.run({
    positionals,
    values,
    json: false,
    out: (line) => out.push(line),
    note: (line) => notes.push(line),
  });
  return { code, out, notes };
}

describe.each(["new", "recovery"])("runseal keys %s", (action) => {
  it("makes a key in a file that its owner alone can read, and prints the public key alone", async () => {
    const file = join(folder, "key");
    const { code, out, notes } = await run([action], { out: file });
    expect(code).toBe(0);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const { seed, public_key: key } = JSON.parse(readFileSync(file, "utf8")) as Record<string, string>;
    expect(out).toEqual([key]);
    expect([...out, ...notes].join("\n")).not.toContain(seed);
    expect(toHex(nativeCrypto.signer(fromHex(String(seed))).publicKey)).toBe(key);
    expect(toHex((await readKeyFile(file)).publicKey)).toBe(key);
  });

  it("never replaces a file", async () => {
    const file = join(folder, "key");
    writeFileSync(file, "precious");
    await expect(run([action], { out: file })).rejects.toThrow(UsageError);
    expect(readFileSync(file, "utf8")).toBe("precious");
  });
});

describe("a key file", () => {
  it("is not read where others can read it", async () => {
    const file = join(folder, "key");
    await run(["new"], { out: file });
    chmodSync(file, 0o644);
    await expect(readKeyFile(file)).rejects.toThrow("chmod 600");
  });

  it("is refused where it is damaged, absent or something else", async () => {
    const file = join(folder, "key");
    await run(["new"], { out: file });
    const text = readFileSync(file, "utf8");
    for (const bad of [
      text.replace(/"seed":"./, '"seed":"z'),
      text.replace(/"public_key":"../, '"public_key":"00'),
      "",
      "{}",
    ]) {
      writeFileSync(file, bad);
      await expect(readKeyFile(file)).rejects.toThrow("no key file");
    }
    await expect(readKeyFile(join(folder, "none"))).rejects.toThrow(UsageError);
  });
});

describe("runseal keys sign", () => {
  const record = (key: Uint8Array) =>
    encodeRecord({
      epoch: 4,
      prev: new Uint8Array(32).fill(1),
      time: 1_800_000_000_000_000_000n,
      op: OPS.recover,
      add: [{ role: ROLES.audit, key }],
      retire: [{ role: ROLES.audit, key: new Uint8Array(32).fill(9) }],
      genesis: null,
    });

  it("signs a record without a network, and says what it does", async () => {
    const file = join(folder, "key");
    const [key = ""] = (await run(["recovery"], { out: file })).out;
    const added = nativeCrypto.signer(new Uint8Array(32).fill(5)).publicKey;
    const bytes = record(added);
    const { code, out, notes } = await run(["sign"], { "key-file": file, record: toBase64(bytes) });
    expect(code).toBe(0);
    const message = signedMessage("registry", nativeCrypto.sha256(bytes));
    expect(nativeCrypto.verifyEd25519(fromHex(key), message, fromHex(out[0] ?? ""))).toBe(true);
    expect(notes[0]).toContain("epoch 4: recover");
    expect(notes.join("\n")).toContain(toHex(added));
  });

  it("refuses what is no record, and an action that there is not", async () => {
    const file = join(folder, "key");
    await run(["new"], { out: file });
    await expect(run(["sign"], { "key-file": file, record: "AAAA" })).rejects.toThrow(UsageError);
    expect(() =>
      keysCommand.run({ positionals: ["toString"], values: {}, json: false, out: () => {}, note: () => {} }),
    ).toThrow(UsageError);
  });
});
