import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { toHex } from "../../../shared/bytes.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import { formatOrigin } from "../../../shared/entry/log-id.ts";
import { signCheckpoint } from "../../../shared/note/checkpoint.ts";
import {
  decodeRecord,
  encodeRecord,
  genesisRecord,
  ROLES,
  signRecord,
} from "../../../shared/registry/record.ts";
import { BundleVerifier } from "../../../shared/verify/bundle.ts";
import { brief, verifyLines } from "./random-log.ts";
import { secondVerify } from "./second-verifier.ts";
import { fieldsLine, registryLine, T0, TestLog, TestTenant } from "./test-tenant.ts";

const tenant = new TestTenant("real");
const log = new TestLog(tenant).fill(6);
const kept = { registryId: tenant.registryId, checkpoint: log.checkpoint(undefined, 4) };

/** A forger's tenant under the real names: the same host, tenant and principal, other keys, another story. */
function fabricated(): TestLog {
  return new TestLog(new TestTenant("forger", nativeCrypto, tenant.id), "log", 1, tenant.name).fill(6);
}

describe("a fabricated tenant", () => {
  const forged = fabricated();
  const lines = forged.lines();

  it("is consistent with itself, and the report says that nothing was pinned", () => {
    const report = verifyLines(lines);
    expect(report).toMatchObject({ verdict: "intact", pinned: false });
    expect(report.trusted).toContain("the registry inside the bundle: nothing was pinned");
    expect(forged.origin).toBe(log.origin);
  });

  it("does not pass with the registry id pinned", () => {
    expect(brief(verifyLines(lines, { registryId: kept.registryId }))).toEqual({
      verdict: "broken",
      seq: 0,
      kind: "malformed",
      codes: ["invalid-genesis at 0"],
    });
  });

  it("does not pass with a kept checkpoint: its registry lacks the key that signed it", () => {
    expect(verifyLines(lines, { checkpoint: kept.checkpoint }).issues).toMatchObject([
      { seq: 0, code: "unregistered-key" },
    ]);
    expect(verifyLines(lines, { checkpoint: log.checkpoint(undefined, 0) }).verdict).toBe("broken");
    expect(verifyLines(lines, { checkpoint: forged.checkpoint(undefined, 4) }).verdict).toBe("intact");
  });

  it("can't have the real key in its registry: that key would have to sign it", () => {
    const { genesis } = decodeRecord(tenant.records[0]?.bytes ?? new Uint8Array());
    if (genesis === null) throw new Error("unreachable");
    const forger = new TestTenant("forger");
    const add = [
      { role: ROLES.audit, key: tenant.audit.publicKey },
      { role: ROLES.log, key: forger.log.publicKey },
    ];
    const record = genesisRecord({ ...genesis, time: T0, add });
    // Signed by the key that it has, and, in place of the real one, by another under the real one's name.
    const [byLog, byAudit] = [forger.log, forger.audit].map(
      (signer) => signRecord(nativeCrypto, record, [signer]).signatures[0],
    );
    if (byLog === undefined || byAudit === undefined) throw new Error("unreachable");
    const bytes = encodeRecord(record);
    const named = { ...byAudit, key: tenant.audit.publicKey };
    for (const signatures of [[byLog], [byLog, byAudit], [byLog, named]]) {
      const sorted = [...signatures].sort((a, b) => (toHex(a.key) < toHex(b.key) ? -1 : 1));
      const forgedLines = [lines[0] ?? "", registryLine({ bytes, signatures: sorted }, 0), ...lines.slice(2)];
      expect(verifyLines(forgedLines, { checkpoint: kept.checkpoint }).issues[0]).toMatchObject({
        code: "invalid-genesis",
      });
    }
  });
});

describe("a kept checkpoint", () => {
  it("pins the log and all that it has grown by", () => {
    for (const size of [0, 1, 3, 6]) {
      const report = verifyLines(log.lines(), { checkpoint: log.checkpoint(undefined, size) });
      expect(report).toMatchObject({ verdict: "intact", pinned: true });
      expect(report.trusted).toContain("the kept checkpoint");
    }
  });

  it("of one history refuses another of the same keys: rewritten, rolled back, or of another log", () => {
    const rewritten = new TestLog(tenant).fill(3).append({ run: "another" });
    expect(rewritten.seq).toBe(4);
    const other = new TestLog(tenant);
    other.fill(3).append({ run: "another" });
    expect(brief(verifyLines(other.lines(), kept))).toMatchObject({
      codes: ["kept-head-mismatch at 4"],
      kind: "fork",
    });
    expect(brief(verifyLines(new TestLog(tenant).fill(3).lines(), kept))).toMatchObject({
      codes: ["truncated at 4"],
    });
    expect(brief(verifyLines(new TestLog(tenant, "other").fill(6).lines(), kept))).toMatchObject({
      codes: ["log-id-mismatch at 0"],
    });
  });

  it("that is damaged itself never passes", () => {
    for (const checkpoint of [
      "",
      "x",
      kept.checkpoint.trimEnd(),
      kept.checkpoint.replace("4\n", "5\n"),
      `${kept.checkpoint}x`,
    ]) {
      const report = verifyLines(log.lines(), { checkpoint });
      expect([checkpoint, report.verdict]).toEqual([checkpoint, "broken"]);
      expect(report.issues[0]?.detail).toMatch(/^the kept checkpoint: /);
    }
  });

  it("may be signed by a key that was retired since", () => {
    const own = new TestTenant("rotated");
    const its = new TestLog(own).fill(3);
    const checkpoint = its.checkpoint();
    own.rotate();
    expect(verifyLines(its.fill(2).lines(), { checkpoint })).toMatchObject({
      verdict: "intact",
      pinned: true,
    });
  });
});

describe("a kept head SEQ:HASH", () => {
  const head = (seq: number) => ({ seq, hash: toHex(log.entries[seq - 1]?.hash ?? new Uint8Array()) });

  it("matches where every leaf up to it was walked, and pins nothing by itself", () => {
    for (const seq of [1, 3, 6]) {
      const report = verifyLines(log.lines(), { keptHead: head(seq) });
      expect(report).toMatchObject({
        verdict: "intact",
        pinned: false,
        kept_head: { ...head(seq), found: head(seq).hash, matches: true },
      });
      expect(report.trusted).toContain("the kept head");
    }
  });

  it("does not match where a leaf up to it is only there as a hash, although its own hash is the kept one", () => {
    for (const lines of [
      log.lines({ withhold: [2] }),
      log.lines({ from: 3 }),
      log.lines({ withhold: [4] }),
    ]) {
      const report = verifyLines(lines, { registryId: kept.registryId, keptHead: head(4) });
      expect(report).toMatchObject({ verdict: "broken", kept_head: { found: head(4).hash, matches: false } });
      expect(report.issues).toMatchObject([{ seq: 4, code: "truncated" }]);
    }
    // What is withheld after it does not matter.
    expect(verifyLines(log.lines({ withhold: [5] }), { keptHead: head(4) })).toMatchObject({
      verdict: "intact",
      kept_head: { matches: true },
    });
  });

  it("does not match another hash, or a place beyond the log", () => {
    expect(verifyLines(log.lines(), { keptHead: { ...head(3), seq: 2 } })).toMatchObject({
      verdict: "broken",
      kept_head: { matches: false, found: head(2).hash },
      break: { seq: 2, verdict: "fork" },
    });
    expect(verifyLines(log.lines(), { keptHead: { ...head(3), seq: 7 } })).toMatchObject({
      verdict: "broken",
      kept_head: { matches: false, found: null },
      break: { seq: 7, verdict: "truncated" },
    });
  });
});

describe("a head of a retired key", () => {
  const own = new TestTenant("retired");
  const its = new TestLog(own).fill(3);
  const before = its.checkpoint();
  const old = own.rotate();

  it("does not count alone: who holds that key can sign it today", () => {
    const report = verifyLines(its.lines({ checkpoint: before }), { registryId: own.registryId });
    expect(report.issues).toMatchObject([{ seq: 3, code: "unregistered-key" }]);
    expect(secondVerify(its.lines({ checkpoint: before }), {}).issues).toEqual([
      { seq: 3, code: "unregistered-key" },
    ]);
  });

  it("counts where the same head was kept elsewhere, or the new key signed as well", () => {
    expect(verifyLines(its.lines({ checkpoint: before }), { checkpoint: before })).toMatchObject({
      verdict: "intact",
    });
    for (const signers of [[own.audit, old], [old, own.audit], [own.audit]]) {
      const report = verifyLines(its.lines({ checkpoint: its.checkpoint(signers) }));
      expect(report).toMatchObject({ verdict: "intact", head: { key: toHex(own.audit.publicKey) } });
    }
  });

  it("never counts over an entry of a later epoch", () => {
    const grown = new TestLog(own, "grown").fill(1);
    const checkpoint = grown.checkpoint([old]);
    expect(verifyLines(grown.lines({ checkpoint }), { checkpoint }).issues).toContainEqual({
      seq: 1,
      code: "unregistered-key",
      detail: "the head: no signer held the audit role at the last entry's epoch",
    });
  });
});

describe("a report", () => {
  it("lists what was not checked", () => {
    const whole = verifyLines(log.lines());
    expect(whole.not_checked).toEqual([
      "freshness: nothing that was checked says that there is no later head, or no later registry record",
    ]);
    const part = verifyLines(log.lines({ from: 2, to: 4, values: false }));
    expect(part).toMatchObject({ verdict: "intact", checked: 3 });
    expect(part.not_checked).toEqual([
      "3 leaves of 6: only their hashes are in the bundle",
      "whether the head's signer held its role at the last entry's epoch: that entry's leaf is not in the bundle",
      "6 values of 6: they are committed to, not disclosed",
      whole.not_checked?.[0],
    ]);
    const [entry] = log.entries;
    if (entry === undefined) throw new Error("unreachable");
    const disclosed = log
      .lines({ values: false })
      .flatMap((line) =>
        line.includes('"seq":1,')
          ? [line, fieldsLine("disclosure", { seq: 1, openings: entry.openings.slice(0, 1) })]
          : [line],
      );
    expect(verifyLines(disclosed).not_checked?.join()).toContain("11 values of 12");
  });

  it("is the same with both crypto ports", () => {
    const reports = [nativeCrypto, pureCrypto].map((crypto) => {
      const verifier = new BundleVerifier(crypto, { verifiedBy: "test", registryId: tenant.registryId });
      for (const line of log.lines()) verifier.line(line);
      return verifier.finish();
    });
    expect(reports[0]).toEqual(reports[1]);
  });

  it("has the head, the last entry and the range", () => {
    const report = verifyLines(log.lines({ from: 2, to: 3 }));
    const last = toHex(log.entries[5]?.hash ?? new Uint8Array());
    expect(report).toMatchObject({
      from: 2,
      to: 3,
      checked: 2,
      last: { seq: 6, hash: last },
      verified_by: "test",
    });
    expect(report.head).toMatchObject({
      seq: 6,
      size: 6,
      root: toHex(log.edge.root()),
      key: toHex(tenant.audit.publicKey),
    });
    const empty = verifyLines(new TestLog(tenant, "empty").lines(), { registryId: tenant.registryId });
    expect(empty).toMatchObject({
      verdict: "intact",
      checked: 0,
      last: null,
      head: { size: 0 },
      from: 1,
      to: 0,
    });
  });

  it("tells of progress now and then", () => {
    const seen: number[] = [];
    const verifier = new BundleVerifier(nativeCrypto, {
      verifiedBy: "test",
      onProgress: (checked) => seen.push(checked),
    });
    const long = new TestLog(tenant, "long").fill(20_001);
    for (const line of long.lines({ values: false })) verifier.line(line);
    expect(seen).toEqual([10_000, 20_000]);
    expect(verifier.finish().verdict).toBe("intact");
  });

  it("is of another log for a head under the right name but another generation", () => {
    const second = new TestLog(tenant, "log", 2).fill(6);
    expect(second.origin).toBe(formatOrigin({ ...log.logName, generation: 2 }));
    const note = signCheckpoint(nativeCrypto, second.origin, [tenant.audit], {
      origin: second.origin,
      ...log.head,
    });
    expect(verifyLines(log.lines({ checkpoint: note })).issues).toMatchObject([{ code: "log-id-mismatch" }]);
    expect(verifyLines(second.lines()).verdict).toBe("intact");
  });
});
