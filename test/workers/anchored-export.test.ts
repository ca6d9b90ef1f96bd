import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { nativeCrypto } from "../../native/crypto.ts";
import type { VerifyReport } from "../../shared/api/schemas.ts";
import { fromBase64, fromHex, toHex, utf8 } from "../../shared/bytes.ts";
import { decodeHeadsLeaf } from "../../shared/heads/leaf.ts";
import { leafHash } from "../../shared/merkle/hash.ts";
import { verifyInclusion } from "../../shared/merkle/verify.ts";
import { openCheckpoint } from "../../shared/note/checkpoint.ts";
import { parseVkey } from "../../shared/note/vkey.ts";
import { BundleVerifier } from "../../shared/verify/bundle.ts";
import { stopClock } from "../durable-objects/faults.ts";
import { listed, serviceListed } from "./heads-support.ts";
import type { TestTenant } from "./support.ts";
import { call, entries, newKey, newTenant } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant("anchored");
});

const append = (of: TestTenant, count: number) =>
  call(of.key, "POST", "/v1/principals/agent/entries", entries(count));
const exported = async (key = tenant.key, query = ""): Promise<string[]> => {
  const answer = await call(key, "GET", `/v1/principals/agent/export${query}`);
  expect(answer.status).toBe(200);
  return answer.text.trim().split("\n");
};
function verify(lines: string[], registryId = tenant.registryId): VerifyReport {
  const verifier = new BundleVerifier(nativeCrypto, { registryId, verifiedBy: "test" });
  for (const line of lines) verifier.line(line);
  return verifier.finish();
}
const kindsOf = (lines: string[]) =>
  lines
    .map((line) => (JSON.parse(line) as { t?: string }).t)
    .filter((t) => t === "tenant" || t === "cosignature");

describe("an export", () => {
  it("verifies without anything of the logs of heads before the log is listed", async () => {
    await append(tenant, 3);
    const lines = await exported();
    expect([verify(lines).verdict, kindsOf(lines)]).toEqual(["intact", []]);
  });

  it("shows where the tenant's log lists the head, and goes on from there", async () => {
    await listed(tenant);
    await append(tenant, 4);
    const report = verify(await exported());
    expect(report).toMatchObject({
      verdict: "intact",
      head: { size: 7 },
      freshness: { listed: { size: 3 } },
    });
    await listed(tenant);
    expect(verify(await exported()).freshness?.listed?.size).toBe(7);
  });

  it("shows that the tenant's log is in the service's, and what it covers", async () => {
    await serviceListed(tenant);
    const lines = await exported();
    expect(kindsOf(lines)).toEqual(["tenant", "cosignature"]);
    expect(verify(lines)).toMatchObject({ verdict: "intact", issues: [] });
    // What the service's log lists is older than the last list: both lists are shown.
    await append(tenant, 1);
    await listed(tenant);
    const later = await exported();
    expect(kindsOf(later)).toEqual(["tenant", "tenant", "cosignature"]);
    expect(verify(later)).toMatchObject({ verdict: "intact", freshness: { listed: { size: 8 } } });
  });

  it("names no other log to who may not see them, or does not want them", async () => {
    const narrow = await newKey(tenant, ["read"], ["agent"]);
    expect(kindsOf(await exported(narrow))).toEqual([]);
    expect(kindsOf(await exported(tenant.key, "?anchors=false"))).toEqual([]);
    expect(kindsOf(await exported())).not.toEqual([]);
  });

  it("goes without them where a log of heads is away", async () => {
    const stub = env.HEAD_LOG.getByName(tenant.id);
    const sql = (query: string) =>
      runInDurableObject(stub, (_log, state) => void state.storage.sql.exec(query));
    await sql("ALTER TABLE leaves RENAME TO away");
    const lines = await exported();
    await sql("ALTER TABLE away RENAME TO leaves");
    expect([verify(lines).verdict, kindsOf(lines)]).toEqual(["intact", []]);
    expect(kindsOf(await exported())).not.toEqual([]);
  });
});

describe("the proof that the service's log lists a tenant", () => {
  interface Proof {
    vkey: string;
    checkpoint: string;
    size: number;
    index: number;
    leaf: string;
    path: string[];
    listed: { size: number; root: string };
  }
  const proofOf = async (of: TestTenant): Promise<Proof> => {
    const { status, body } = await call(of.key, "GET", "/v1/log/service-proof");
    expect(status).toBe(200);
    return body as unknown as Proof;
  };

  it("is under the service's key, holds the tenant's head, and nothing of another tenant but hashes", async () => {
    const others = [await newTenant("b"), await newTenant("c")];
    expect((await call(others[0]?.key ?? "", "GET", "/v1/log/service-proof")).status).toBe(404);
    for (const of of [tenant, ...others]) await serviceListed(of);
    for (const of of [tenant, ...others]) {
      const proof = await proofOf(of);
      expect(proof.vkey).toBe((await call(null, "GET", "/log/key")).text.trim());
      const { name, publicKey } = parseVkey(nativeCrypto, proof.vkey);
      const { checkpoint } = openCheckpoint(nativeCrypto, proof.checkpoint, name, [publicKey]);
      expect([checkpoint.origin, checkpoint.size]).toEqual([env.LOG_HOST, proof.size]);
      const bytes = fromBase64(proof.leaf);
      const path = proof.path.map((hash) => fromHex(hash, 32));
      const hash = leafHash(nativeCrypto, bytes);
      expect(verifyInclusion(nativeCrypto, proof.index, proof.size, hash, path, checkpoint.root).ok).toBe(
        true,
      );
      const leaf = decodeHeadsLeaf(bytes);
      expect(toHex(leaf?.registryId ?? new Uint8Array())).toBe(toHex(nativeCrypto.sha256(utf8(proof.vkey))));
      expect(leaf?.heads.map(({ logId, size, root }) => [toHex(logId), size, toHex(root)])).toEqual([
        [of.registryId, proof.listed.size, proof.listed.root],
      ]);
      const own = await call(of.key, "GET", "/v1/heads");
      const log = own.body.log as unknown as { size: number; root: string };
      expect(proof.listed).toEqual({ size: log.size, root: log.root });
    }
  });
});

describe("an export, later", () => {
  it("verifies when both keys were rotated, before and after the tenant's log knows of it", async () => {
    const own = await newTenant("rotated");
    await append(own, 3);
    await serviceListed(own);
    for (const role of ["log", "audit"]) {
      expect((await call(own.key, "POST", "/v1/registry/rotations", { role })).status).toBeLessThan(300);
    }
    // They take effect two minutes after they were published.
    stopClock(Date.now() + 3_600_000);
    const stale = verify(await exported(own.key), own.registryId);
    expect(stale).toMatchObject({ verdict: "intact", freshness: { listed: null } });
    expect(stale.not_checked?.join()).toContain("a key signed it that is retired since");
    await append(own, 2);
    await listed(own);
    const report = verify(await exported(own.key), own.registryId);
    expect(report).toMatchObject({ verdict: "intact", freshness: { listed: { size: report.head?.size } } });
    vi.restoreAllMocks();
  });
});
