import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { formatVkey, logKey, witnessKey } from "../../../shared/note/vkey.ts";
import { MAX_WITNESSES, parseWitnessList } from "../../../shared/note/witness-list.ts";

const keyOf = (n: number) => nativeCrypto.signer(new Uint8Array(32).fill(n)).publicKey;
const vkeyOf = (name: string, n = 1) => formatVkey(witnessKey(nativeCrypto, name, keyOf(n)));
const namesIn = (text: string) => parseWitnessList(nativeCrypto, text).map(({ name }) => name);

describe("a list of witnesses", () => {
  it("has a key a line, each once, whatever stands between", () => {
    const [a, b] = [vkeyOf("a.example"), vkeyOf("b.example", 2)];
    expect(namesIn(`# trusted\n${a}\r\n\n  ${b}  \n${a}\n`)).toEqual(["a.example", "b.example"]);
    expect(namesIn("")).toEqual([]);
    // The same name with another key is another witness.
    expect(namesIn(`${a}\n${vkeyOf("a.example", 2)}`)).toHaveLength(2);
  });

  it.each([
    ["no vkey", "a.example", "line 2: not <name>"],
    ["a vkey whose pluses became spaces", vkeyOf("a").replaceAll("+", " "), "line 2: not <name>"],
    ["the key of a log", formatVkey(logKey(nativeCrypto, "a", keyOf(1))), "line 2: not the key of a witness"],
    ["a key id of another key", vkeyOf("a").replace(/\+[0-9a-f]{8}\+/, "+00000000+"), "line 2: the key id"],
  ])("refuses %s, and names the line", (_what, vkey, message) => {
    expect(() => namesIn(`${vkeyOf("b")}\n${vkey}\n`)).toThrow(
      expect.objectContaining({ code: "bad-vkey", message: expect.stringContaining(message) }),
    );
  });

  it("is bounded", () => {
    const many = (count: number) => Array.from({ length: count }, (_, i) => vkeyOf(`w${i}`)).join("\n");
    expect(namesIn(many(MAX_WITNESSES))).toHaveLength(MAX_WITNESSES);
    expect(() => namesIn(many(MAX_WITNESSES + 1))).toThrow(expect.objectContaining({ code: "bad-vkey" }));
  });
});
