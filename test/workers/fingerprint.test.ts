import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { nativeCrypto } from "../../native/crypto.ts";
import { concat, fromHex, toHex, utf8 } from "../../shared/bytes.ts";
import { fingerprintOf } from "../../workers/http/fingerprint.ts";
import { problemOf, TestLog } from "../durable-objects/support.ts";
import type { TestTenant } from "./support.ts";
import { call, entry, newTenant } from "./support.ts";

const MASTER = "01".repeat(32);

/** The same by another library: WebCrypto. */
async function expected(masterKey: string, message: Uint8Array): Promise<string> {
  const base = await crypto.subtle.importKey("raw", fromHex(masterKey, 32), "HKDF", false, ["deriveBits"]);
  const info = utf8("runseal.idempotency.v1");
  const parameters = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info };
  const bits = await crypto.subtle.deriveBits(parameters, base, 256);
  const key = await crypto.subtle.importKey("raw", bits, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return toHex(new Uint8Array(await crypto.subtle.sign("HMAC", key, message)));
}

describe("a request's fingerprint", () => {
  it("is HMAC-SHA-256 under a key of its own, whichever master key came before", async () => {
    const body = utf8('{"a":1}');
    for (const master of [MASTER, "02".repeat(32), MASTER, MASTER]) {
      const message = concat(utf8('[["t","p"],["op",null,"x"]]\n'), body);
      expect(fingerprintOf(master, ["t", "p"], ["op", null, "x"], body)).toBe(
        await expected(master, message),
      );
    }
  });

  it("differs with the owner, what is asked and the body", () => {
    const all = [
      fingerprintOf(MASTER, ["t", "p"], ["op"], utf8("x")),
      fingerprintOf(MASTER, ["t", "q"], ["op"], utf8("x")),
      fingerprintOf(MASTER, ["t"], ["p", "op"], utf8("x")),
      fingerprintOf(MASTER, ["t", "p"], ["op", null], utf8("x")),
      fingerprintOf(MASTER, ["t", "p"], ["op"], utf8("y")),
    ];
    expect(new Set(all).size).toBe(all.length);
  });
});

describe("what a log keeps of a request with an Idempotency-Key", () => {
  let tenant: TestTenant;
  beforeAll(async () => {
    tenant = await newTenant();
  });
  const headers = { "idempotency-key": "k" };
  const send = (log: string, body: string) =>
    call(tenant.key, "POST", `/v1/principals/${log}/entries`, body, headers);
  const fingerprints = (log: string) =>
    new TestLog(tenant, log).inside(({ storage }) =>
      storage.sql.exec("SELECT hex(fingerprint) AS text FROM answers").toArray(),
    );
  const plain = (body: string) => {
    const asked = JSON.stringify(["appendEntries", "json", null, null, null]);
    return nativeCrypto.sha256(concat(utf8(`${asked}\n`), utf8(body)));
  };

  it("is its keyed hash, and another one in another log", async () => {
    const body = JSON.stringify({ ...entry(), id: undefined });
    expect((await send("one", body)).status).toBe(201);
    expect((await send("two", body)).status).toBe(201);
    const [one, two] = [await fingerprints("one"), await fingerprints("two")];
    const asked = ["appendEntries", "json", null, null, null];
    const keyed = fingerprintOf(env.MASTER_KEY, [tenant.id, "one"], asked, utf8(body));
    expect(one).toEqual([{ text: keyed.toUpperCase() }]);
    expect(two).not.toEqual(one);
    expect(one).not.toEqual([{ text: toHex(plain(body)).toUpperCase() }]);
  });

  it("in the form of before is still found: a retry of it is refused and stored by no other way", async () => {
    const body = JSON.stringify({ ...entry(), id: undefined });
    expect((await send("old", body)).status).toBe(201);
    await new TestLog(tenant, "old").inside(({ storage }) => {
      const key = nativeCrypto.sha256(utf8(JSON.stringify(["appendEntries", "k"])));
      const [old, form] = [key.slice().buffer, plain(body).slice().buffer];
      storage.sql.exec("UPDATE answers SET key = ?, fingerprint = ?", old, form);
    });
    const again = await send("old", body);
    expect([again.status, problemOf(again)]).toEqual([422, "idempotency-mismatch"]);
    expect((await call(tenant.key, "GET", "/v1/principals/old/head")).body.size).toBe(1);
  });
});
