import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { fromHex, toHex } from "../../../shared/bytes.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import {
  computeLogId,
  formatOrigin,
  logPrefix,
  newHexId,
  parseOrigin,
  tenantOrigin,
} from "../../../shared/entry/log-id.ts";
import { readVectors } from "../../vectors/read.ts";

const hexId = fc.uint8Array({ minLength: 16, maxLength: 16 }).map(toHex);
const names = fc.record({
  host: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9.:-]{0,60}$/),
  tenant: hexId,
  principal: hexId,
  generation: fc.integer({ min: 1, max: 999_999_999 }),
});

describe("an origin", () => {
  it("gives back the names that it was made of", () => {
    fc.assert(
      fc.property(names, (name) => {
        expect(parseOrigin(formatOrigin(name))).toEqual(name);
      }),
    );
  });

  it("begins with its tenant's, and holds what the log's objects are stored under", () => {
    fc.assert(
      fc.property(names, (name) => {
        const origin = formatOrigin(name);
        expect(origin.startsWith(`${tenantOrigin(name.host, name.tenant)}/p/`)).toBe(true);
        expect(origin).toBe(`${name.host}/${logPrefix(name)}`);
      }),
    );
  });

  const good = `log.example/t/${"ab".repeat(16)}/p/${"cd".repeat(16)}.1`;
  it.each([
    ["nothing", ""],
    ["a scheme", `https://${good}`],
    ["no host", good.slice("log.example".length)],
    ["a host that begins with a dash", `-${good}`],
    ["a host of 254 characters", `${"h".repeat(254)}${good.slice("log.example".length)}`],
    ["a short tenant", good.replace("abab", "ab")],
    ["hex in capitals", good.replace("abab", "ABab")],
    ["no generation", good.slice(0, -2)],
    ["generation 0", `${good.slice(0, -1)}0`],
    ["a leading zero", `${good.slice(0, -1)}01`],
    ["a generation of ten digits", `${good}000000000`],
    ["a line feed at the end", `${good}\n`],
    ["more path", `${good}/x`],
  ])("is refused with %s", (_, origin) => {
    expect(parseOrigin(good).host).toBe("log.example");
    expect(() => parseOrigin(origin)).toThrow(expect.objectContaining({ code: "bad-origin" }));
  });
});

describe("a log id", () => {
  it("gives the vectors, with both crypto ports", () => {
    for (const { registry_id, origin, log_id } of readVectors<Record<string, string>[]>("log-id")) {
      const { principal, generation } = parseOrigin(origin ?? "");
      for (const crypto of [nativeCrypto, pureCrypto]) {
        expect(toHex(computeLogId(crypto, fromHex(registry_id ?? ""), principal, generation))).toBe(log_id);
      }
    }
  });

  it("is another for any other registry, principal or generation, and the same for any host", () => {
    const registry = new Uint8Array(32);
    const other = Uint8Array.from({ length: 32 }, () => 1);
    const [p, q] = ["00".repeat(16), "01".repeat(16)];
    const ids = [
      computeLogId(nativeCrypto, registry, p, 1),
      computeLogId(nativeCrypto, other, p, 1),
      computeLogId(nativeCrypto, registry, q, 1),
      computeLogId(nativeCrypto, registry, p, 2),
    ].map(toHex);
    expect(new Set(ids).size).toBe(4);
  });

  it("has a principal of 16 bytes", () => {
    expect(() => computeLogId(nativeCrypto, new Uint8Array(32), "00", 1)).toThrow();
    expect(newHexId(new Uint8Array(20).fill(7))).toBe("07".repeat(16));
  });
});
