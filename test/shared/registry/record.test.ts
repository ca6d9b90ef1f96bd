import { describe, expect, it } from "vitest";
import { toHex } from "../../../shared/bytes.ts";
import type { CborInput } from "../../../shared/cbor/encode.ts";
import { encodeCbor } from "../../../shared/cbor/encode.ts";
import { RunsealError } from "../../../shared/errors.ts";
import {
  decodeRecord,
  encodeRecord,
  genesisRecord,
  isZeroHash,
  OPS,
  ROLES,
} from "../../../shared/registry/record.ts";
import { bytesOf, T0 } from "../verify/test-tenant.ts";

const [k1, k2] = [bytesOf("1", 32), bytesOf("2", 32)].sort((x, y) => (toHex(x) < toHex(y) ? -1 : 1)) as [
  Uint8Array,
  Uint8Array,
];
const GENESIS: readonly CborInput[] = [
  "runseal.registry.v1",
  0,
  new Uint8Array(32),
  T0,
  0,
  [[1, k1]],
  [],
  "log.example/t/0",
  bytesOf("n", 16),
];
const LATER: readonly CborInput[] = ["runseal.registry.v1", 1, bytesOf("p", 32), T0, 2, [[3, k1]], []];

const codeOf = (items: CborInput): string => {
  try {
    decodeRecord(encodeCbor(items));
    return "accepted";
  } catch (error) {
    if (error instanceof RunsealError) return error.code;
    throw error;
  }
};
const withItem = (items: readonly CborInput[], at: number, value: CborInput) =>
  items.map((item, i) => (i === at ? value : item));

describe("a registry record", () => {
  it("is read as it was written", () => {
    for (const items of [GENESIS, LATER]) {
      const bytes = encodeCbor(items);
      expect(toHex(encodeRecord(decodeRecord(bytes)))).toBe(toHex(bytes));
    }
    expect(decodeRecord(encodeCbor(GENESIS))).toMatchObject({
      epoch: 0,
      op: OPS.genesis,
      genesis: { origin: "log.example/t/0" },
    });
    expect(decodeRecord(encodeCbor(LATER)).genesis).toBeNull();
    expect(decodeRecord(encodeCbor(withItem(LATER, 3, 2n ** 64n - 1n))).time).toBe(2n ** 64n - 1n);
  });

  it("of genesis sorts what it adds", () => {
    const add = [
      { role: ROLES.log, key: k1 },
      { role: ROLES.audit, key: k2 },
      { role: ROLES.client, key: k2 },
      { role: ROLES.client, key: k1 },
    ];
    const record = genesisRecord({ origin: "o", nonce: bytesOf("n", 16), time: 0n, add });
    expect(decodeRecord(encodeRecord(record)).add.map(({ role }) => role)).toEqual([1, 2, 3, 3]);
    expect(isZeroHash(record.prev)).toBe(true);
    expect(isZeroHash(k1)).toBe(false);
  });

  const refused: readonly (readonly [string, CborInput])[] = [
    ["nothing in it", []],
    ["no tag", [1, 2]],
    ["a map", new Map()],
    ["a negative epoch", withItem(LATER, 1, -1)],
    ["an epoch of 2^53", withItem(LATER, 1, 2n ** 53n)],
    ["an epoch as text", withItem(LATER, 1, "1")],
    ["a prev of 31 bytes", withItem(LATER, 2, bytesOf("p", 31))],
    ["prev null", withItem(LATER, 2, null)],
    ["a negative time", withItem(LATER, 3, -1)],
    ["a time as text", withItem(LATER, 3, "0")],
    ["op 5", withItem(LATER, 4, 5)],
    ["op null", withItem(LATER, 4, null)],
    ["genesis' op without origin", withItem(LATER, 4, 0)],
    ["an origin with another op", withItem(GENESIS, 4, 1)],
    ["genesis without a nonce", GENESIS.slice(0, 8)],
    ["genesis with an origin in bytes", withItem(GENESIS, 7, bytesOf("o", 4))],
    ["a nonce of 15 bytes", withItem(GENESIS, 8, bytesOf("n", 15))],
    ["an item too many", [...LATER, null]],
    ["add null", withItem(LATER, 5, null)],
    ["a binding of three", withItem(LATER, 5, [[3, k1, 1]])],
    ["role 0", withItem(LATER, 5, [[0, k1]])],
    ["role 8", withItem(LATER, 5, [[8, k1]])],
    ["a role as text", withItem(LATER, 5, [["3", k1]])],
    ["a key of 33 bytes", withItem(LATER, 5, [[3, bytesOf("k", 33)]])],
    [
      "roles out of order",
      withItem(LATER, 5, [
        [3, k1],
        [2, k1],
      ]),
    ],
    [
      "keys out of order",
      withItem(LATER, 5, [
        [3, k2],
        [3, k1],
      ]),
    ],
    [
      "a binding twice",
      withItem(LATER, 5, [
        [3, k1],
        [3, k1],
      ]),
    ],
    [
      "retired keys out of order",
      withItem(LATER, 6, [
        [3, k2],
        [3, k1],
      ]),
    ],
  ];
  it.each(refused)("is refused with %s", (_, items) => {
    expect(codeOf(items)).toMatch(/^(malformed-registry|not-tagged)$/);
  });

  it("of another version is unsupported, not malformed", () => {
    expect(codeOf(withItem(LATER, 0, "runseal.registry.v2"))).toBe("unsupported-registry");
    expect(codeOf(["runseal.registry.v2"])).toBe("unsupported-registry");
    expect(() => decodeRecord(Uint8Array.from([...encodeCbor(LATER), 0]))).toThrow(
      expect.objectContaining({ code: "malformed-cbor" }),
    );
  });
});
