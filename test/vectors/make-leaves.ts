/**
 * Vectors of leaves and of clients' statements: every optional item there and not there, the widest numbers and names.
 *
 * @module
 */
import { toHex } from "../../shared/bytes.ts";
import type { CborInput } from "../../shared/cbor/encode.ts";
import { encodeCbor } from "../../shared/cbor/encode.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { decodeLeaf } from "../../shared/entry/decode-leaf.ts";
import type { Leaf } from "../../shared/entry/leaf.ts";
import { encodeLeaf, encodeStatement, REPORTERS } from "../../shared/entry/leaf.ts";
import { RunsealError } from "../../shared/errors.ts";
import { leafHash } from "../../shared/merkle/hash.ts";
import { signedMessage } from "../../shared/signing.ts";
import { bytesOf, T0 } from "../shared/verify/test-tenant.ts";
import { leafJson } from "./inputs.ts";

const WIDEST = 2n ** 64n - 1n;
const ID_128 = `${"Az09._:-".repeat(16)}`;
const fields = (...names: string[]) => new Map(names.map((name) => [name, bytesOf(`commitment/${name}`, 32)]));

/** Null in every place where the format allows it. */
export const MINIMAL: Leaf = {
  logId: bytesOf("log", 32),
  seq: 1,
  prev: bytesOf("log", 32),
  recordedAt: T0,
  occurredAt: null,
  id: "e-1",
  kind: "run.started",
  session: null,
  run: null,
  step: null,
  call: null,
  actor: null,
  submitter: { credential: bytesOf("credential", 16), reporter: "agent" },
  action: new Map(),
  authorization: null,
  outcome: null,
  client: null,
  epoch: 0,
  key: bytesOf("audit", 32),
};

/** Something in every place. */
export const FULL: Leaf = {
  ...MINIMAL,
  seq: 42,
  prev: bytesOf("prev", 32),
  recordedAt: T0 + 1_000_000_001n,
  occurredAt: T0,
  id: "01JGGZ8T4Q3V5W7X9Y0A2B4C6D",
  kind: "tool.call.completed",
  session: "session-1",
  run: "run-1",
  step: "step-7",
  call: "call-3",
  actor: { type: "agent", id: "refund-bot", codeHash: bytesOf("code", 32) },
  submitter: { credential: bytesOf("credential", 16), reporter: "host" },
  action: fields("tool", "args", "tool_call_id"),
  authorization: { tag: "user_approval", fields: fields("user_id", "request_entry") },
  outcome: { tag: "success", fields: fields("result") },
  client: { key: bytesOf("client", 32), signature: bytesOf("signature", 64) },
  epoch: 3,
};

const NAME_64 = "0123456789_abcdefghijklmnopqrstuvwxyz.0123456789_abcdefghijklmno";

/** 128 fields whose names have 64 characters each. */
const MANY = fields(...Array.from({ length: 128 }, (_, i) => `${NAME_64.slice(0, 61)}${String(i).padStart(3, "0")}`));

export const LEAVES: Readonly<Record<string, Leaf>> = {
  minimal: MINIMAL,
  full: FULL,
  ...Object.fromEntries(
    (["occurredAt", "session", "run", "step", "call", "actor", "authorization", "outcome", "client"] as const).flatMap(
      (item) => [
        [`with ${item} alone`, { ...MINIMAL, [item]: FULL[item] }],
        [`without ${item}`, { ...FULL, [item]: null }],
      ],
    ),
  ),
  "an actor without a code hash": { ...FULL, actor: { type: "user", id: "u-1", codeHash: null } },
  "an authorization without fields": { ...FULL, authorization: { tag: "not_required", fields: new Map() } },
  "an outcome without fields": { ...FULL, outcome: { tag: "unknown", fields: new Map() } },
  ...Object.fromEntries(
    REPORTERS.map((reporter) => [`reported by ${reporter}`, { ...MINIMAL, submitter: { ...MINIMAL.submitter, reporter } }]),
  ),
  ...Object.fromEntries(
    [23, 24, 255, 256, 65_535, 65_536, 2 ** 32 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER].map((n) => [
      `seq and epoch ${n}`,
      { ...MINIMAL, seq: n, epoch: n, prev: bytesOf("prev", 32) },
    ]),
  ),
  ...Object.fromEntries(
    [0n, 23n, 2n ** 32n - 1n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 63n, WIDEST].map((time) => [
      `times ${time}`,
      { ...MINIMAL, recordedAt: time, occurredAt: time },
    ]),
  ),
  "ids of 128 characters": {
    ...FULL,
    id: ID_128,
    session: ID_128,
    run: ID_128,
    step: ID_128,
    call: ID_128,
    actor: { type: ID_128, id: ID_128, codeHash: bytesOf("code", 32) },
    kind: `ext.${"a".repeat(32)}.${"Z".repeat(91)}`,
  },
  "field names of 1, 23, 24 and 64 characters": {
    ...MINIMAL,
    action: fields("b", "a", "abcdefghijklmnopqrstuvw", "abcdefghijklmnopqrstuvwx", NAME_64, "b.", "b_", "b0", "ba"),
  },
  "the widest of all": {
    ...FULL,
    seq: Number.MAX_SAFE_INTEGER,
    epoch: Number.MAX_SAFE_INTEGER,
    recordedAt: WIDEST,
    occurredAt: WIDEST,
    id: ID_128,
    session: ID_128,
    run: ID_128,
    step: ID_128,
    call: ID_128,
    kind: `ext.${"a".repeat(32)}.${"Z".repeat(91)}`,
    actor: { type: ID_128, id: ID_128, codeHash: bytesOf("code", 32) },
    submitter: { credential: bytesOf("credential", 16), reporter: "service" },
    action: MANY,
    authorization: { tag: NAME_64, fields: new Map() },
    outcome: { tag: NAME_64, fields: new Map() },
  },
};

export function leafVectors(crypto: CryptoPort): unknown {
  return Object.entries(LEAVES).map(([name, leaf]) => {
    const bytes = encodeLeaf(leaf);
    return { name, leaf: leafJson(leaf), encoded: toHex(bytes), hash: toHex(leafHash(crypto, bytes)) };
  });
}

/** The full leaf's items as CBOR values, with some of them replaced. */
function items(changes: Readonly<Record<number, CborInput>> = {}): CborInput[] {
  const full: CborInput[] = [
    "runseal.entry.v1",
    FULL.logId,
    FULL.seq,
    FULL.prev,
    FULL.recordedAt,
    FULL.occurredAt,
    FULL.id,
    FULL.kind,
    FULL.session,
    FULL.run,
    FULL.step,
    FULL.call,
    ["agent", "refund-bot", bytesOf("code", 32)],
    [bytesOf("credential", 16), "host"],
    FULL.action,
    ["user_approval", fields("user_id")],
    ["success", fields("result")],
    [bytesOf("client", 32), bytesOf("signature", 64)],
    FULL.epoch,
    FULL.key,
  ];
  return full.map((item, i) => changes[i] ?? (i in changes ? null : item));
}

const WRONG_ITEMS: Readonly<Record<string, Readonly<Record<number, CborInput>>>> = {
  "a log_id of 31 bytes": { 1: bytesOf("log", 31) },
  "seq 0": { 2: 0 },
  "a negative seq": { 2: -1 },
  "seq 2^53": { 2: 2n ** 53n },
  "a prev of 33 bytes": { 3: bytesOf("prev", 33) },
  "recorded_at null": { 4: null },
  "recorded_at as text": { 4: "1" },
  "a negative occurred_at": { 5: -1 },
  "an empty id": { 6: "" },
  "an id of 129 characters": { 6: "a".repeat(129) },
  "an id with a space": { 6: "a b" },
  "an id that is not ASCII": { 6: "caf\u00e9" },
  "id null": { 6: null },
  "a kind of one part": { 7: "run" },
  "a kind in capitals": { 7: "Run.started" },
  "a kind of 129 characters": { 7: `a.${"b".repeat(127)}` },
  "a session as bytes": { 8: bytesOf("x", 4) },
  "a run as a number": { 9: 1 },
  "an actor of two items": { 12: ["agent", "a"] },
  "an actor with a short hash": { 12: ["agent", "a", bytesOf("x", 16)] },
  "submitter null": { 13: null },
  "a reporter that is none": { 13: [bytesOf("credential", 16), "nobody"] },
  "a credential of 15 bytes": { 13: [bytesOf("credential", 15), "host"] },
  "action null": { 14: null },
  "action as an array": { 14: [] },
  "an empty field name": { 14: new Map([["", bytesOf("c", 32)]]) },
  "a field name of 65 characters": { 14: new Map([["a".repeat(65), bytesOf("c", 32)]]) },
  "a field name in capitals": { 14: new Map([["A", bytesOf("c", 32)]]) },
  "a field name as a number": { 14: new Map([[1, bytesOf("c", 32)]]) },
  "a commitment of 31 bytes": { 14: new Map([["a", bytesOf("c", 31)]]) },
  "129 fields": {
    14: fields(...Array.from({ length: 129 }, (_, i) => `f${i}`)),
    15: null,
    16: null,
  },
  "an authorization without a map": { 15: ["user"] },
  "an outcome whose status is none": { 16: ["Not A Tag", new Map()] },
  "a client signature of 63 bytes": { 17: [bytesOf("client", 32), bytesOf("s", 63)] },
  "a negative epoch": { 18: -1 },
  "a key of 0 bytes": { 19: new Uint8Array() },
};

function codeOf(bytes: Uint8Array): string {
  try {
    decodeLeaf(bytes);
  } catch (error) {
    if (error instanceof RunsealError) return error.code === "unsupported-leaf" ? "unsupported" : "malformed";
  }
  throw new Error("a leaf that the vectors call refused is accepted");
}

export function refusedLeafVectors(): unknown {
  const minimal = toHex(encodeLeaf(MINIMAL));
  const other = (tag: string) => toHex(encodeCbor(items({ 0: tag })));
  const cases: Record<string, string> = {
    nothing: "",
    "a text": toHex(encodeCbor("runseal.entry.v1")),
    "an empty array": "80",
    "19 items": toHex(encodeCbor(items().slice(0, 19))),
    "21 items": toHex(encodeCbor([...items(), null])),
    ...Object.fromEntries(
      Object.entries(WRONG_ITEMS).map(([name, changes]) => [name, toHex(encodeCbor(items(changes)))]),
    ),
    "a byte after the leaf": `${minimal}00`,
    "a byte missing at the end": minimal.slice(0, -2),
    // 98 14: the same array head in two bytes; bf..ff: a map of indefinite length.
    "a head that is not the shortest": `9814${minimal.slice(2)}`,
    "an array of indefinite length": `9f${minimal.slice(2)}ff`,
    "a tag in front": `c0${minimal}`,
    "recorded_at as a floating-point number": minimal.replace(toHex(encodeCbor(T0)), "fb43d8868ca4b3e140"),
    "field names in the wrong order": toHex(encodeCbor(items({ 14: fields("a", "b") }))).replace(
      /a26161(5820[0-9a-f]{64})6162(5820[0-9a-f]{64})/,
      "a26162$26161$1",
    ),
    "a field name that repeats": toHex(encodeCbor(items({ 14: fields("a", "b") }))).replace(
      /a26161(5820[0-9a-f]{64})6162(5820[0-9a-f]{64})/,
      "a26161$16161$2",
    ),
    "more than 16,384 bytes": toHex(encodeCbor(items({ 6: "a".repeat(16_384) }))),
    "another version": other("runseal.entry.v2"),
    "another thing": other("runseal.heads.v1"),
    "another version of other items": toHex(encodeCbor(["runseal.entry.v2", 1, "x"])),
    // 82: an array of two; f9 3e00: 1.5 as a half.
    "another version with a floating-point number": `82${toHex(encodeCbor("runseal.entry.v2"))}f93e00`,
    "this version with a floating-point number": `82${toHex(encodeCbor("runseal.entry.v1"))}f93e00`,
  };
  return Object.entries(cases).map(([name, encoded]) => ({
    name,
    encoded,
    refused: codeOf(Uint8Array.from(encoded.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))),
  }));
}

export function statementVectors(crypto: CryptoPort): unknown {
  return (["minimal", "full", "the widest of all"] as const).map((name) => {
    const leaf = LEAVES[name] ?? MINIMAL;
    const seed = bytesOf(`client-key/${name}`, 32);
    const signer = crypto.signer(seed);
    const statement = encodeStatement(leaf.logId, leaf);
    const message = signedMessage("client", crypto.sha256(statement));
    return {
      leaf: name,
      seed: toHex(seed),
      key: toHex(signer.publicKey),
      statement: toHex(statement),
      message: toHex(message),
      signature: toHex(signer.sign(message)),
    };
  });
}
