import { nativeCrypto } from "../../../native/crypto.ts";
import { fromHex } from "../../../shared/bytes.ts";
import { encodeCbor } from "../../../shared/cbor/encode.ts";
import { leafHash } from "../../../shared/merkle/hash.ts";
import type { SignedRecord } from "../../../shared/registry/record.ts";
import { encodeRecord, OPS, ROLES, signRecord } from "../../../shared/registry/record.ts";
import type { IssueCode } from "../../../shared/verify/issues.ts";
import type { Given } from "./second-verifier.ts";
import type { EntryPlan } from "./test-tenant.ts";
import { bytesOf, fieldsLine, leafLine, registryLine, signerOf, TestLog, TestTenant } from "./test-tenant.ts";

export const tenant = new TestTenant("issues");
export const log = new TestLog(tenant).fill(5);
export const good = log.lines();
export const at = (t: string, nth = 0) => {
  const found = good.map((line, i) => ({ line, i })).filter(({ line }) => line.startsWith(`{"t":"${t}"`));
  return found[nth]?.i ?? -1;
};
export const replaced = (i: number, ...lines: string[]) => [
  ...good.slice(0, i),
  ...lines,
  ...good.slice(i + 1),
];
export const entry = (seq: number) => log.entries[seq - 1] ?? log.append();

/** The bundle of a log whose entry 3 is made by this plan. */
function third(plan: EntryPlan, prepare: (tenant: TestTenant) => unknown = () => null): string[] {
  const own = new TestTenant("third");
  const its = new TestLog(own).fill(2);
  prepare(own);
  its.append(plan);
  return its.fill(2).lines();
}

/** A leaf line with any bytes and their right hash. */
export function leafOf(seq: number, bytes: Uint8Array): string {
  return leafLine({ seq, bytes, hash: leafHash(nativeCrypto, bytes) });
}

function withRecord(record: SignedRecord, epoch: number): string[] {
  return [...good.slice(0, 2), registryLine(record, epoch), ...good.slice(2)];
}

export const stranger = signerOf("nobody");
const rotation = tenant.next(
  OPS.rotate,
  [{ role: ROLES.audit, key: stranger.publicKey }],
  [{ role: ROLES.audit, key: tenant.audit.publicKey }],
);
const smallOrder = fromHex(`00${"00".repeat(30)}80`);
export const head = (note: string) =>
  replaced(at("checkpoint"), JSON.stringify({ t: "checkpoint", checkpoint: note }));

export interface Case {
  readonly name: string;
  readonly lines: readonly string[];
  readonly given?: Given;
  /** The first break. */
  readonly code: IssueCode;
  readonly seq: number;
}

/** Keys, records, and the bytes of single entries. */
export const ENTRY_CASES: readonly Case[] = [
  {
    name: "genesis is not signed",
    lines: replaced(1, (good[1] ?? "").replace(/"signature":"[0-9a-f]{8}/, '"signature":"00000000')),
    code: "invalid-genesis",
    seq: 0,
  },
  { name: "genesis is missing", lines: good.filter((_, i) => i !== 1), code: "malformed-entry", seq: 0 },
  {
    name: "genesis is not the one of line 1",
    lines: replaced(0, (good[0] ?? "").replace(/"registry_id":"[0-9a-f]{8}/, '"registry_id":"00000000')),
    code: "invalid-genesis",
    seq: 0,
  },
  {
    name: "genesis is not the pinned one",
    lines: good,
    given: { registryId: "ab".repeat(32) },
    code: "invalid-genesis",
    seq: 0,
  },
  {
    name: "a key of small order in genesis",
    lines: replaced(
      1,
      registryLine(
        {
          bytes: encodeRecord({
            ...rotation,
            op: OPS.genesis,
            epoch: 0,
            prev: new Uint8Array(32),
            add: [{ role: 1, key: smallOrder }],
            retire: [],
            genesis: { origin: "x", nonce: bytesOf("n", 16) },
          }),
          signatures: [{ key: smallOrder, signature: new Uint8Array(64) }],
        },
        0,
      ),
    ),
    code: "invalid-genesis",
    seq: 0,
  },
  {
    name: "a rotation that the old key did not sign",
    lines: withRecord(signRecord(nativeCrypto, rotation, [stranger]), 1),
    code: "invalid-registry",
    seq: 0,
  },
  {
    name: "a record whose line has another epoch",
    lines: withRecord(signRecord(nativeCrypto, rotation, [stranger, tenant.audit]), 2),
    code: "invalid-registry",
    seq: 0,
  },
  {
    name: "a record of another version",
    lines: withRecord({ bytes: encodeCbor(["runseal.registry.v2", 1]), signatures: [] }, 1),
    code: "unsupported-entry",
    seq: 0,
  },
  {
    name: "the origin is another tenant's",
    lines: replaced(0, (good[0] ?? "").replace("log.example", "other.example")),
    code: "log-id-mismatch",
    seq: 0,
  },
  {
    name: "the origin is none",
    lines: replaced(0, (good[0] ?? "").replace("/p/", "/q/")),
    code: "malformed-entry",
    seq: 0,
  },
  {
    name: "an entry of another log",
    lines: third({ forge: (leaf) => ({ ...leaf, logId: bytesOf("other", 32) }) }),
    code: "log-id-mismatch",
    seq: 3,
  },
  {
    name: "an entry that does not follow the one before",
    lines: third({ forge: (leaf) => ({ ...leaf, prev: bytesOf("other", 32) }) }),
    code: "broken-link",
    seq: 3,
  },
  {
    name: "an entry that says that it stands elsewhere",
    lines: third({ forge: (leaf) => ({ ...leaf, seq: 4 }) }),
    code: "altered-entry",
    seq: 3,
  },
  {
    name: "a hash beside a leaf that is not its own",
    lines: replaced(at("leaf", 2), leafLine({ ...entry(3), hash: entry(2).hash })),
    code: "altered-entry",
    seq: 3,
  },
  {
    name: "an epoch before that of the key",
    lines: third({ forge: (leaf) => ({ ...leaf, epoch: 0 }) }, (own) => own.rotate()),
    code: "unregistered-key",
    seq: 3,
  },
  {
    name: "recorded_at goes back",
    lines: third({ forge: (leaf) => ({ ...leaf, recordedAt: 0n }) }),
    code: "time-regression",
    seq: 3,
  },
  {
    name: "an audit key that nobody registered",
    lines: third({ forge: (leaf) => ({ ...leaf, key: stranger.publicKey }) }),
    code: "unregistered-key",
    seq: 3,
  },
  {
    name: "an epoch that has not begun",
    lines: third({ forge: (leaf) => ({ ...leaf, epoch: 7 }) }),
    code: "unregistered-key",
    seq: 3,
  },
  {
    name: "a client key that nobody registered",
    lines: third({ client: stranger }),
    code: "unregistered-key",
    seq: 3,
  },
  {
    name: "bytes that are no leaf",
    lines: replaced(at("leaf", 2), leafOf(3, Uint8Array.of(0x80))),
    code: "malformed-entry",
    seq: 3,
  },
  {
    name: "a leaf of a later version",
    lines: replaced(at("leaf", 4), leafOf(5, encodeCbor(["runseal.entry.v2", 1]))),
    code: "root-mismatch",
    seq: 5,
  },
  {
    name: "a value that was not committed to",
    lines: replaced(at("content", 2), fieldsLine("content", { seq: 3, openings: entry(2).openings })),
    code: "altered-content",
    seq: 3,
  },
];
