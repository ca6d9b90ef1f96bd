import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { toHex } from "../../../shared/bytes.ts";
import type { LeafBody } from "../../../shared/entry/leaf.ts";
import { encodeStatement } from "../../../shared/entry/leaf.ts";
import { prepareEntry } from "../../../shared/entry/prepare.ts";
import { signEntry } from "../../../shared/entry/sign.ts";
import { JsonReader } from "../../../shared/json/reader.ts";
import { signedMessage } from "../../../shared/signing.ts";

const signer = nativeCrypto.signer(new Uint8Array(32).fill(3));
const logId = new Uint8Array(32).fill(4);
let drawn = 0;
const random = (count: number) => new Uint8Array(count).fill(++drawn);
const sign = (text: string) => signEntry(text, { crypto: nativeCrypto, logId, signer, random });

/** What the service reads, and whether the signature is good for the log. */
function received(text: string, forLog = logId): { body: LeafBody | null; good: boolean } {
  let body: LeafBody | null = null;
  let good = false;
  prepareEntry(new JsonReader(text), {
    crypto: nativeCrypto,
    credential: new Uint8Array(16),
    defaultReporter: "host",
    writer: "client",
    random: (count) => crypto.getRandomValues(new Uint8Array(count)),
    newId: () => "none",
    verifyClient: (read) => {
      body = read;
      const message = signedMessage("client", nativeCrypto.sha256(encodeStatement(forLog, read)));
      good = nativeCrypto.verifyEd25519(read.client?.key ?? logId, message, read.client?.signature ?? logId);
      return true;
    },
  });
  return { body, good };
}

describe("signing an entry", () => {
  it("gives a text whose signature the service finds good, for that log alone", () => {
    const text = sign(
      '{"id":"a","kind":"tool.call.started","run":"r","action":{"tool":"t","args":{"n":1e2,"s":"é"}}}',
    );
    expect(received(text).good).toBe(true);
    expect(received(text, new Uint8Array(32)).good).toBe(false);
    expect(text).toContain('"$value":{"n":1e2,"s":"é"}');
  });

  it("keeps commitments and salts that the sender chose, and values that look like them", () => {
    const commitment = "ab".repeat(32);
    const salt = "cd".repeat(16);
    const text = sign(
      `{"id":"a","kind":"tool.call.started","action":{"tool":{"$commitment":"${commitment}"},"args":{"$value":{"$value":1},"$salt":"${salt}"}}}`,
    );
    const { body, good } = received(text);
    expect(good).toBe(true);
    expect(toHex(body?.action.get("tool") ?? logId)).toBe(commitment);
    expect(text).toContain(`"args":{"$value":{"$value":1},"$salt":"${salt}"}`);
  });

  it("replaces a signature that is there, and keeps the tags of sections and null members as they are", () => {
    const text = sign(
      '{"id":"a","kind":"tool.call.completed","step":null,"action":{"tool":"t"},"authorization":null,"outcome":{"status":"success","result":1}}',
    );
    expect(received(text).good).toBe(true);
    expect(received(sign(text))).toMatchObject({ good: true });
    expect(text.match(/"client"/g)).toHaveLength(1);
    expect(text).toContain('"status":"success"');
  });

  it("refuses an entry without an id, and what the service would refuse", () => {
    expect(() => sign('{"kind":"tool.call.started","action":{"tool":"t","args":{}}}')).toThrow("has an id");
    expect(() => sign('{"id":"a","kind":"no.such","action":{}}')).toThrow("no such kind");
    expect(() => sign('{"id":"a","kind":"tool.call.started","action":{"tool":"t"}}')).toThrow();
    expect(() => sign('{"id":"a"} x')).toThrow();
    expect(() => sign("7")).toThrow();
  });
});
