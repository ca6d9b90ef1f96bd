import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import type { VerifyReport } from "../../../shared/api/schemas.ts";
import { toBase64, toHex, utf8 } from "../../../shared/bytes.ts";
import { encodeCbor } from "../../../shared/cbor/encode.ts";
import { witnessKey } from "../../../shared/note/vkey.ts";
import type { BundleOptions } from "../../../shared/verify/bundle.ts";
import { BundleVerifier } from "../../../shared/verify/bundle.ts";
import {
  cosignatureLine,
  headOf,
  headOfHeads,
  recordLine,
  serviceLogOf,
  tenantLine,
  tenantLogOf,
  treeOf,
} from "./heads-of.ts";
import { secondVerify } from "./second-verifier.ts";
import { bytesOf, signerOf, TestLog, TestTenant } from "./test-tenant.ts";

type Given = Omit<BundleOptions, "verifiedBy">;

/** Verifies with both verifiers, and demands that they agree. */
function verify(lines: readonly string[], given: Given = {}): VerifyReport {
  const verifier = new BundleVerifier(nativeCrypto, { ...given, verifiedBy: "test" });
  for (const line of lines) verifier.line(line);
  const report = verifier.finish();
  const second = secondVerify(lines, {
    ...(given.registryId === undefined ? {} : { registryId: given.registryId }),
    ...(given.checkpoint === undefined ? {} : { checkpoint: given.checkpoint }),
    witnessKeys: (given.witnesses ?? []).map(({ name, publicKey }) => ({ name, key: publicKey })),
  });
  const issues = report.issues.map(({ seq, code }) => ({ seq, code }));
  expect(second).toEqual({ verdict: report.verdict, issues });
  return report;
}
const issuesOf = (report: VerifyReport) => report.issues.map(({ seq, code }) => `${code} at ${seq}`);

/** A log of seven entries, listed with three and then with five, among another log of the tenant. */
function story() {
  const tenant = new TestTenant("anchored");
  const log = new TestLog(tenant).fill(7);
  const other = new TestLog(tenant, "other").fill(2);
  const heads = tenantLogOf(tenant);
  heads.push(tenant.records[0]?.bytes ?? new Uint8Array());
  heads.list([headOf(log, 3), headOf(other)]);
  heads.list([headOf(log, 5)]);
  heads.list([headOf(other)]);
  return { tenant, log, other, heads, lines: log.lines() };
}
const FIVE = 2;

const W = { name: "w.example/w", signer: signerOf("w") };
const w = witnessKey(nativeCrypto, W.name, W.signer.publicKey);

describe("a line of the tenant's log", () => {
  it("shows which head was listed, and when: the report says so and names who is trusted for it", () => {
    const { tenant, log, heads, lines } = story();
    const report = verify([...lines, tenantLine(heads, FIVE, log, 5)], { registryId: tenant.registryId });
    expect(report.verdict).toBe("intact");
    const time = "2026-01-01T00:00:02Z";
    expect(report.freshness).toEqual({
      listed: { size: 5, time, index: 2, tenant_log_size: 4 },
      witnessed: [],
    });
    expect(report.trusted).toContain(`the tenant's log and its key: that it listed 5 entries at ${time}`);
    expect(report.not_checked?.at(-1)).toContain(`no later registry record after ${time}`);
    const without = verify(lines, { registryId: tenant.registryId });
    expect(without.freshness).toBeUndefined();
    expect(without.not_checked?.at(-1)).toMatch(/no later registry record$/);
  });

  it("counts with the last of the lists that it shows", () => {
    const { log, heads, lines } = story();
    for (const order of [
      [1, 2],
      [2, 1],
    ]) {
      const shown = order.map((index) => tenantLine(heads, index, log, index === 1 ? 3 : 5));
      expect(verify([...lines, ...shown]).freshness?.listed?.size).toBe(5);
    }
  });

  it("that lists more entries than the bundle's head has shows that entries are held back", () => {
    const { log, heads } = story();
    const older = new TestLog(log.tenant).fill(4);
    const listed = heads.list([headOf(log)]);
    const line = tenantLine(heads, listed, log, 7);
    expect(issuesOf(verify([...older.lines(), line]))).toEqual(["truncated at 5"]);
  });

  it("that lists a head which the bundle's does not go on from shows the fork", () => {
    const { tenant, heads, lines } = story();
    const forked = new TestLog(tenant);
    for (let i = 0; i < 4; i++) forked.append({ id: `fork-${i}` });
    const at = heads.list([headOf(forked)]);
    for (const consistency of [treeOf(forked).consistency(2, 4), []]) {
      const line = tenantLine(heads, at, forked, 4, { consistency });
      expect(issuesOf(verify([...lines, line]))).toEqual(["kept-head-mismatch at 4"]);
    }
  });

  const wrong: [string, string, (s: ReturnType<typeof story>) => string][] = [
    [
      "a leaf at another index",
      "root-mismatch",
      ({ heads, log }) => tenantLine(heads, FIVE, log, 5, { index: 1 }),
    ],
    [
      "a path of another leaf",
      "root-mismatch",
      ({ heads, log }) => tenantLine(heads, FIVE, log, 5, { path: heads.tree.inclusion(1, 4) }),
    ],
    [
      "an index beyond the log",
      "root-mismatch",
      ({ heads, log }) => tenantLine(heads, FIVE, log, 5, { index: 9 }),
    ],
    ["a list without the log", "log-id-mismatch", ({ heads, log }) => tenantLine(heads, 3, log, 7)],
    [
      "another tenant's list",
      "log-id-mismatch",
      ({ heads, log }) => tenantLine(heads, heads.list([headOf(log)], bytesOf("other", 32)), log, 7),
    ],
    [
      "a head that nobody with the role signed",
      "unregistered-key",
      ({ heads, log }) =>
        tenantLine(heads, FIVE, log, 5, { checkpoint: heads.checkpoint(4, [signerOf("stranger")]) }),
    ],
    [
      "a head that an audit key signed",
      "unregistered-key",
      ({ heads, log, tenant }) =>
        tenantLine(heads, FIVE, log, 5, { checkpoint: heads.checkpoint(4, [tenant.audit]) }),
    ],
    [
      "a head with the signature of another",
      "invalid-signature",
      ({ heads, log }) => {
        const [text = ""] = heads.checkpoint().split("\n\n");
        const [, signature = ""] = heads.checkpoint(3).split("\n\n");
        return tenantLine(heads, FIVE, log, 5, { checkpoint: `${text}\n\n${signature}` });
      },
    ],
    [
      "the head of a log",
      "log-id-mismatch",
      ({ heads, log }) => tenantLine(heads, FIVE, log, 5, { checkpoint: log.checkpoint() }),
    ],
    [
      "a head that is no note",
      "malformed-entry",
      ({ heads, log }) => tenantLine(heads, FIVE, log, 5, { checkpoint: "x" }),
    ],
    [
      "a leaf that is no CBOR",
      "malformed-entry",
      ({ heads, log }) => tenantLine(heads, heads.push(Uint8Array.of(0xff)), log, 7),
    ],
    [
      "a list of heads that is malformed",
      "malformed-entry",
      ({ heads, log }) => tenantLine(heads, heads.push(encodeCbor(["runseal.heads.v1", 1])), log, 7),
    ],
    [
      "a leaf of another version",
      "unsupported-entry",
      ({ heads, log }) => tenantLine(heads, heads.push(encodeCbor(["runseal.heads.v2", 1])), log, 7),
    ],
    [
      "a registry record that is not the bundle's",
      "invalid-registry",
      ({ heads }) =>
        recordLine(heads, heads.push(new TestTenant("stranger").records[0]?.bytes ?? new Uint8Array())),
    ],
    [
      "a registry record with a consistency proof",
      "malformed-entry",
      ({ heads, log }) => tenantLine(heads, 0, log, 5),
    ],
  ];
  it.each(wrong)("that shows %s is found: %s", (_what, code, make) => {
    const made = story();
    const line = make(made);
    expect(issuesOf(verify([...made.lines, line]))).toEqual([`${code} at 0`]);
  });

  it("is malformed where two of them have two heads, where they are too many, or its leaf is no base64", () => {
    const { log, heads, lines } = story();
    const line = tenantLine(heads, FIVE, log, 5);
    const again = tenantLine(heads, FIVE, log, 5, { checkpoint: `${heads.checkpoint()}` });
    expect(verify([...lines, line, again]).verdict).toBe("intact");
    heads.list([headOf(log)]);
    for (const bad of [
      [line, tenantLine(heads, 1, log, 3)],
      Array.from({ length: 17 }, () => line),
      [line.replace(/"leaf":"./, '"leaf":"!')],
    ]) {
      expect(issuesOf(verify([...lines, ...bad]))).toEqual(["malformed-entry at 8"]);
    }
    expect(verify([...lines, ...Array.from({ length: 16 }, () => line)]).verdict).toBe("intact");
  });
});

describe("a head that only a retired key signed", () => {
  /** The log's head is of the first key; then the key is rotated. */
  function rotated(listBefore: boolean, recordLeaf = true) {
    const tenant = new TestTenant("rotated");
    const log = new TestLog(tenant).fill(3);
    const heads = tenantLogOf(tenant);
    heads.push(tenant.records[0]?.bytes ?? new Uint8Array());
    const listing = listBefore ? heads.list([headOf(log)]) : -1;
    const old = tenant.rotate();
    const record = recordLeaf ? heads.push(tenant.records[1]?.bytes ?? new Uint8Array()) : -1;
    const late = heads.list([headOf(log)]);
    const lines = log.lines({ checkpoint: log.checkpoint([old]) });
    const listed = (index: number) => tenantLine(heads, index, log, 3);
    return { tenant, log, heads, listing, record, late, lines, listed };
  }

  it("counts where the tenant's log lists it before the record that retires the key", () => {
    const { lines, listed, listing, heads, record } = rotated(true);
    const report = verify([...lines, listed(listing), recordLine(heads, record)]);
    expect(report.verdict).toBe("intact");
  });

  it("does not count on any weaker showing", () => {
    const made = rotated(true);
    const { lines, listed, listing, late, heads, record, log } = made;
    const refused = ["unregistered-key at 3"];
    expect(issuesOf(verify(lines))).toEqual(refused);
    // A list alone does not say that it came before the record; nor does one that came after it.
    expect(issuesOf(verify([...lines, listed(listing)]))).toEqual(refused);
    expect(issuesOf(verify([...lines, recordLine(heads, record)]))).toEqual(refused);
    expect(issuesOf(verify([...lines, listed(late), recordLine(heads, record)]))).toEqual(refused);
    // The record of another epoch is not the one.
    expect(issuesOf(verify([...lines, listed(listing), recordLine(heads, 0)]))).toEqual(refused);
    // A list of a smaller head says nothing of this one.
    const smaller = rotated(false);
    const early = tenantLogOf(smaller.tenant);
    const at = early.list([headOf(smaller.log, 2)]);
    const rec = early.push(smaller.tenant.records[1]?.bytes ?? new Uint8Array());
    expect(
      issuesOf(verify([...smaller.lines, tenantLine(early, at, log, 2), recordLine(early, rec)])),
    ).toEqual(refused);
  });

  it("does not count on the word of a log key that is retired itself", () => {
    const { tenant, lines, log } = rotated(true);
    const heads = tenantLogOf(tenant);
    const at = heads.list([headOf(log)]);
    const rec = heads.push(tenant.records[1]?.bytes ?? new Uint8Array());
    const shown = [tenantLine(heads, at, log, 3), recordLine(heads, rec)];
    expect(verify([...lines, ...shown]).verdict).toBe("intact");
    const oldKey = tenant.rotateLog();
    const again = log.lines({
      checkpoint: (JSON.parse(lines.at(-1) ?? "") as { checkpoint: string }).checkpoint,
    });
    expect(issuesOf(verify([...again, ...shown]))).toEqual(["unregistered-key at 3"]);
    expect(verify([...again, ...shown]).not_checked?.join()).toContain("retired since");
    const both = heads.checkpoint(heads.size, [tenant.log, oldKey]);
    const restated = shown.map((line) => JSON.stringify({ ...JSON.parse(line), checkpoint: both }));
    expect(verify([...again, ...restated]).verdict).toBe("intact");
  });
});

describe("a line of the service's log", () => {
  function witnessed() {
    const made = story();
    const service = serviceLogOf(nativeCrypto);
    const stranger = { logId: bytesOf("another tenant", 32), size: 9, root: bytesOf("root", 32), epoch: 0 };
    service.list([stranger]);
    const at = service.list([headOfHeads(made.heads, 3)]);
    const tenant = tenantLine(made.heads, FIVE, made.log, 5);
    return { ...made, service, at, tenant };
  }

  it("cosigned by a witness that is given shows what was there at its time", () => {
    const { lines, tenant, service, at, heads } = witnessed();
    const line = cosignatureLine(service, at, heads, 3, [{ ...W, time: 1_800_000_000n }]);
    const report = verify([...lines, tenant, line], { witnesses: [w] });
    expect(report.verdict).toBe("intact");
    const time = "2027-01-15T08:00:00Z";
    expect(report.freshness?.witnessed).toEqual([{ witness: W.name, time, size: 5 }]);
    expect(report.trusted).toContain(`the witness ${W.name}: that 5 entries were there at ${time}`);
    expect(report.not_checked?.at(-1)).toContain(time);
    expect(report.not_checked?.join()).not.toContain("cosignatures");
  });

  it("is the operator's own word without such a witness, and the report says so", () => {
    const { lines, tenant, service, at, heads } = witnessed();
    const line = cosignatureLine(service, at, heads, 3, [{ ...W, time: 5n }]);
    const report = verify([...lines, tenant, line]);
    expect(report.verdict).toBe("intact");
    expect(report.freshness?.witnessed).toEqual([]);
    expect(report.trusted.join()).toContain("no witness that was given vouches");
    expect(report.not_checked?.join()).toContain("1 cosignatures");
  });

  it("covers only what the tenant's log listed by then", () => {
    const { lines, tenant, service, heads } = witnessed();
    const early = service.list([headOfHeads(heads, 2)]);
    const line = cosignatureLine(service, early, heads, 2, [{ ...W, time: 5n }]);
    const report = verify([...lines, tenant, line], { witnesses: [w] });
    expect(report.freshness?.witnessed).toEqual([
      { witness: W.name, time: "1970-01-01T00:00:05Z", size: null },
    ]);
  });

  const wrong: [string, string, (s: ReturnType<typeof witnessed>) => string][] = [
    [
      "without a key",
      "malformed-entry",
      ({ service, at, heads }) => cosignatureLine(service, at, heads, 3, [], { vkey: "x" }),
    ],
    [
      "under a witness' key in place of the log's",
      "malformed-entry",
      ({ service, at, heads }) =>
        cosignatureLine(service, at, heads, 3, [], {
          vkey: `${w.name}+${w.keyId.toString(16).padStart(8, "0")}+${toBase64(Uint8Array.of(4, ...w.publicKey))}`,
        }),
    ],
    [
      "of another host",
      "log-id-mismatch",
      ({ heads }) => {
        const foreign = serviceLogOf(nativeCrypto, "foreign", "other.example");
        return cosignatureLine(foreign, foreign.list([headOfHeads(heads, 3)]), heads, 3);
      },
    ],
    [
      "that another key signed",
      "unregistered-key",
      ({ service, at, heads }) =>
        cosignatureLine(service, at, heads, 3, [], { checkpoint: service.checkpoint(2, [signerOf("x")]) }),
    ],
    [
      "with a list of another log",
      "log-id-mismatch",
      ({ service, heads }) =>
        cosignatureLine(service, service.list([headOfHeads(heads, 3)], bytesOf("x", 32)), heads, 3),
    ],
    [
      "with a list without the tenant",
      "log-id-mismatch",
      ({ service, heads }) => cosignatureLine(service, 0, heads, 3),
    ],
    [
      "with a leaf that is not there",
      "root-mismatch",
      ({ service, heads, at }) => cosignatureLine(service, at, heads, 3, [], { index: 0 }),
    ],
    [
      "with a leaf that is no list",
      "unsupported-entry",
      ({ service, heads }) => cosignatureLine(service, service.push(encodeCbor(["x"])), heads, 3),
    ],
    [
      "that lists a longer tenant's log",
      "truncated",
      ({ service, heads }) =>
        cosignatureLine(service, service.list([{ ...headOfHeads(heads), size: 9 }]), heads, 4),
    ],
    [
      "that lists another history of the tenant's log",
      "kept-head-mismatch",
      ({ service, heads }) =>
        cosignatureLine(
          service,
          service.list([{ ...headOfHeads(heads, 3), root: bytesOf("x", 32) }]),
          heads,
          3,
        ),
    ],
    [
      "with the given witness' signature over something else",
      "invalid-signature",
      ({ service, at, heads }) =>
        cosignatureLine(service, at, heads, 3, [
          {
            name: W.name,
            signer: { publicKey: W.signer.publicKey, sign: () => bytesOf("junk", 64) },
            time: 5n,
          },
        ]),
    ],
  ];
  it.each(wrong)("%s is found: %s", (_what, code, make) => {
    const made = witnessed();
    const line = make(made);
    const report = verify([...made.lines, made.tenant, line], { witnesses: [w] });
    expect(issuesOf(report)).toEqual([`${code} at 0`]);
    expect(report.freshness?.witnessed).toEqual([]);
  });

  it("is malformed without a line of the tenant's log before it", () => {
    const { lines, service, at, heads } = witnessed();
    expect(issuesOf(verify([...lines, cosignatureLine(service, at, heads, 3)]))).toEqual([
      "malformed-entry at 8",
    ]);
  });

  it("is not looked at where the head of the tenant's log does not open", () => {
    const { lines, tenant, service, at, heads } = witnessed();
    const closed = JSON.stringify({
      ...JSON.parse(tenant),
      checkpoint: heads.checkpoint(4, [signerOf("x")]),
    });
    const line = cosignatureLine(service, at, heads, 3, [], { vkey: "x" });
    expect(issuesOf(verify([...lines, closed, line]))).toEqual(["unregistered-key at 0"]);
  });

  it("takes a service whose id is made of its vkey's text", () => {
    const { service } = witnessed();
    expect(toHex(service.registryId)).toBe(toHex(nativeCrypto.sha256(utf8(service.vkey))));
  });
});
