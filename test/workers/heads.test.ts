import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { SERVICE } from "../../durable-objects/head-log/types.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { fromBase64, fromHex, toBase64, toHex } from "../../shared/bytes.ts";
import { pureCrypto } from "../../shared/crypto/pure.ts";
import { HeadsWalker } from "../../shared/heads/walk.ts";
import { decodeEntryBundle } from "../../shared/merkle/bundle.ts";
import { leafHash } from "../../shared/merkle/hash.ts";
import { verifyConsistency, verifyInclusion } from "../../shared/merkle/verify.ts";
import { openCheckpoint, parseCheckpoint } from "../../shared/note/checkpoint.ts";
import { parseVkey } from "../../shared/note/vkey.ts";
import { listed, reported, runHeadLog, serviceListed } from "./heads-support.ts";
import type { TestTenant } from "./support.ts";
import { call, entries, newKey, newTenant } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant("heads");
});

interface LogOut {
  origin: string;
  registry_id: string;
  size: number;
  root: string;
  checkpoint: string;
  batch: number;
  signed_at: string | null;
  age_seconds: number | null;
  republished_at: string | null;
  pending: number;
  mirrored_size: number;
  alarms: unknown[];
}
interface HeadsOut {
  log: LogOut;
  heads: { principal: string; log_id: string; size: number; root: string; epoch: number; listed: boolean }[];
  next_cursor: string | null;
}

async function get<T>(path: string, key = tenant.key): Promise<T> {
  const answer = await call(key, "GET", path);
  expect([path, answer.status]).toEqual([path, 200]);
  return answer.body as T;
}
const append = async (principal: string, count: number): Promise<void> => {
  const { status } = await call(tenant.key, "POST", `/v1/principals/${principal}/entries`, entries(count));
  expect(status).toBe(201);
};

/** Every leaf of the tenant's log, over as many pages as it takes. */
async function allLeaves(of = tenant): Promise<{ leaves: Uint8Array[]; log: LogOut }> {
  const leaves: Uint8Array[] = [];
  for (let from: number | null = 0; ; ) {
    const page: { leaves: string[]; next: number | null; log: LogOut } = await get(
      `/v1/log/entries?from=${from}`,
      of.key,
    );
    leaves.push(...page.leaves.map(fromBase64));
    if (page.next === null) return { leaves, log: page.log };
    from = page.next;
  }
}

async function walked(of = tenant): Promise<{ walker: HeadsWalker; leaves: Uint8Array[]; log: LogOut }> {
  const { leaves, log } = await allLeaves(of);
  const registryId = fromHex(of.registryId, 32);
  const walker = new HeadsWalker(pureCrypto, { registryId, withRecords: true });
  for (const leaf of leaves) walker.add(leaf);
  walker.end(log.checkpoint, log.origin);
  return { walker, leaves, log };
}

describe("the tenant's log of heads", () => {
  it("lists the head that each log signed, under the tenant's registry and log key", async () => {
    await append("a", 3);
    await append("b", 300);
    await listed(tenant);
    const { log, heads } = await get<HeadsOut>("/v1/heads");
    expect(heads.map(({ principal }) => principal).sort()).toEqual(["$system", "a", "b"]);
    expect(heads.map(({ log_id }) => log_id)).toEqual(heads.map(({ log_id }) => log_id).sort());
    expect(log.registry_id).toBe(tenant.registryId);
    expect(log.alarms).toEqual([]);
    const { walker, leaves, log: at } = await walked();
    expect(walker.issues).toEqual([]);
    expect([at.size, at.pending, at.mirrored_size]).toEqual([leaves.length, 0, leaves.length]);
    for (const one of heads) {
      const own = await get<{ size: number; root: string; epoch: number }>(
        `/v1/principals/${one.principal}/head`,
      );
      expect([one.principal, one.size, one.root, one.epoch]).toEqual([
        one.principal,
        own.size,
        own.root,
        own.epoch,
      ]);
      const seen = walker.heads.get(one.log_id);
      expect([one.listed, seen?.size, toHex(seen?.root ?? new Uint8Array())]).toEqual([
        true,
        own.size,
        own.root,
      ]);
    }
    expect(walker.epoch).toBe(0);
  });

  it("says what is not listed yet, and how old it is", async () => {
    await listed(tenant);
    await append("a", 2);
    await reported(tenant);
    const before = await get<HeadsOut>("/v1/heads");
    expect(before.log.pending).toBe(1);
    expect(before.heads.find(({ principal }) => principal === "a")?.listed).toBe(false);
    expect(before.heads.filter((one) => !one.listed)).toHaveLength(1);
    expect(before.log.age_seconds).toBeGreaterThanOrEqual(0);
    expect(Date.parse(before.log.signed_at ?? "")).toBeLessThanOrEqual(Date.now());
    await runHeadLog(tenant.id);
    const after = await get<HeadsOut>("/v1/heads");
    expect([after.log.pending, after.log.batch]).toEqual([0, before.log.batch + 1]);
    expect(after.heads.every((one) => one.listed)).toBe(true);
  });

  it("proves each leaf, and each size to be a prefix of every later one", async () => {
    await append("a", 1);
    await listed(tenant);
    const { leaves, log } = await allLeaves();
    const root = fromHex(log.root, 32);
    expect(parseCheckpoint(log.checkpoint).checkpoint.root).toEqual(root);
    for (const [index, leaf] of leaves.entries()) {
      const proof = await get<{ path: string[]; size: number }>(`/v1/log/proof/inclusion?index=${index}`);
      const path = proof.path.map((hash) => fromHex(hash, 32));
      const hash = leafHash(pureCrypto, leaf);
      expect(verifyInclusion(pureCrypto, index, proof.size, hash, path, root)).toEqual({ ok: true });
      const longer = await get<{ path: string[] }>(`/v1/log/proof/consistency?from=${index + 1}`);
      const old = await get<{ path: string[] }>(`/v1/log/proof/inclusion?index=${index}&size=${index + 1}`);
      const oldPath = old.path.map((one) => fromHex(one, 32));
      const way = longer.path.map((one) => fromHex(one, 32));
      // The root of the prefix follows from its last leaf and that leaf's path.
      const prefix = rootOf(index, index + 1, hash, oldPath);
      expect(verifyConsistency(pureCrypto, index + 1, log.size, way, prefix, root)).toEqual({ ok: true });
    }
    expect((await call(tenant.key, "GET", `/v1/log/proof/inclusion?index=${log.size}`)).status).toBe(404);
    expect((await call(tenant.key, "GET", `/v1/log/proof/consistency?from=${log.size + 1}`)).status).toBe(
      400,
    );
  });

  it("serves its tiles and bundles, and pages of leaves", async () => {
    const { leaves, log } = await allLeaves();
    const width = leaves.length;
    expect(width).toBeLessThan(256);
    const tileOf = (path: string) => call(tenant.key, "GET", `/v1/log/tile/${path}`);
    expect((await tileOf(`0/000.p/${width}`)).status).toBe(200);
    expect((await tileOf(`0/000.p/${width + 1}`)).status).toBe(404);
    const outcome = await env.HEAD_LOG.getByName(tenant.id).tile(identityOf(log), {
      kind: "entries",
      index: 0,
      width,
    });
    if (!outcome.ok || outcome.bytes === null) throw new Error("no bundle");
    expect(decodeEntryBundle(outcome.bytes, width).map(toBase64)).toEqual(leaves.map(toBase64));
    const two = await get<{ leaves: string[]; next: number | null }>("/v1/log/entries?from=1&to=3");
    expect([two.leaves, two.next]).toEqual([leaves.slice(1, 3).map(toBase64), null]);
    expect((await call(tenant.key, "GET", "/v1/log/checkpoint")).text).toBe(log.checkpoint);
  });

  it("pages through the heads", async () => {
    const whole = await get<HeadsOut>("/v1/heads");
    const names: string[] = [];
    let after = "";
    for (let page = 0; page <= whole.heads.length; page++) {
      const part = await get<HeadsOut>(`/v1/heads?limit=1${after}`);
      names.push(...part.heads.map(({ principal }) => principal));
      if (part.next_cursor === null) break;
      after = `&cursor=${part.next_cursor}`;
    }
    expect(names).toEqual(whole.heads.map(({ principal }) => principal));
    // A key that sees fewer logs gets full pages of those, and other cursors.
    const narrow = await newKey(tenant, ["read"], ["a"]);
    const part = await get<HeadsOut>("/v1/heads?limit=1", narrow);
    expect(part.heads.map(({ principal }) => principal)).toEqual(["a"]);
    const rest = await get<HeadsOut>(`/v1/heads?limit=1&cursor=${part.next_cursor}`, narrow);
    expect([rest.heads, rest.next_cursor]).toEqual([[], null]);
  });

  it("has cursors that are good for the tenant, key and list that gave them, and for nothing else", async () => {
    const { next_cursor: cursor } = await get<HeadsOut>("/v1/heads?limit=1");
    const stranger = await newTenant();
    const narrow = await newKey(tenant, ["read"], ["a"]);
    const plainId = Buffer.from(cursor ?? "", "base64url")
      .subarray(12)
      .toString("hex");
    for (const [key, path] of [
      [stranger.key, `/v1/heads?cursor=${cursor}`],
      [narrow, `/v1/heads?cursor=${cursor}`],
      [tenant.key, `/v1/anchors?cursor=${cursor}`],
      [tenant.key, `/v1/heads?cursor=${plainId}`],
      [tenant.key, `/v1/heads?cursor=${cursor?.slice(0, -2)}`],
      [tenant.key, "/v1/heads?cursor=!"],
    ] as const) {
      const answer = await call(key, "GET", path);
      expect([path, answer.status, answer.body.type]).toEqual([
        path,
        400,
        "urn:runseal:problem:invalid-cursor",
      ]);
    }
    expect((await call(tenant.key, "GET", `/v1/heads?after=${plainId}`)).status).toBe(400);
  });

  it("goes on showing a log that is gone, at its last head", async () => {
    await append("doomed", 4);
    await listed(tenant);
    const { walker: before } = await walked();
    const head = (await get<HeadsOut>("/v1/heads")).heads.find(({ principal }) => principal === "doomed");
    // The log's storage goes, and so does its alarm: it never reports again.
    const directory = env.TENANT_DIRECTORY.getByName(tenant.id);
    const principal = await directory.principal("doomed");
    const log = env.PRINCIPAL_LOG.getByName(`${tenant.id}/${principal?.id}.1`);
    await runInDurableObject(log, (_log, state) => state.storage.deleteAll());
    await runInDurableObject(env.HEAD_LOG.getByName(tenant.id), (_log, state) => {
      state.storage.sql.exec("UPDATE state SET full_at_ms = 1");
    });
    await append("a", 1);
    await listed(tenant);
    const { walker } = await walked();
    expect(walker.issues).toEqual([]);
    const [old, now] = [before.heads.get(head?.log_id ?? ""), walker.heads.get(head?.log_id ?? "")];
    expect([now?.size, now?.firstIndex]).toEqual([4, old?.firstIndex]);
    expect(now?.lastIndex).toBeGreaterThan(old?.lastIndex ?? Number.NaN);
    expect((await get<HeadsOut>("/v1/heads")).heads).toContainEqual(head);
  });

  it("shows a key of some principals no head, leaf or alarm of another", async () => {
    await listed(tenant);
    const key = await newKey(tenant, ["read"], ["a"]);
    expect((await get<HeadsOut>("/v1/heads", key)).heads.map(({ principal }) => principal)).toEqual(["a"]);
    for (const path of ["/v1/log/entries", "/v1/log/tile/entries/000.p/1"]) {
      expect([path, (await call(key, "GET", path)).status]).toEqual([path, 403]);
    }
    expect((await call(key, "GET", "/v1/log/tile/0/000.p/1")).status).toBe(200);
  });

  it("is empty and signed before the first report, and never another tenant's", async () => {
    const other = await newTenant("other");
    const { text, status } = await call(other.key, "GET", "/v1/log/checkpoint");
    expect(status).toBe(200);
    expect(parseCheckpoint(text).checkpoint.origin).toBe(`runseal.local/t/${other.id}`);
    await listed(other);
    const { walker } = await walked(other);
    expect(walker.issues).toEqual([]);
    expect([...walker.heads.values()]).toHaveLength(1);
    expect((await get<HeadsOut>("/v1/heads", other.key)).heads.map(({ principal }) => principal)).toEqual([
      "$system",
    ]);
  });
});

describe("the service's log", () => {
  it("lists each tenant's log of heads, and answers anyone with its head, key and hash tiles", async () => {
    await append("a", 1);
    await serviceListed(tenant);
    const { log } = await get<HeadsOut>("/v1/heads");
    const vkey = (await call(null, "GET", "/log/key")).text.trim();
    const note = (await call(null, "GET", "/log/checkpoint")).text;
    const { publicKey, name } = parseVkey(pureCrypto, vkey);
    expect(name).toBe("runseal.local");
    const opened = openCheckpoint(pureCrypto, note, name, [publicKey]);
    const outcome = await env.HEAD_LOG.getByName(SERVICE).leaves({ host: name, owner: SERVICE }, 0, 1000);
    if (!outcome.ok) throw new Error(outcome.code);
    const registryId = nativeCrypto.sha256(new TextEncoder().encode(vkey));
    const walker = new HeadsWalker(pureCrypto, { registryId, withRecords: false });
    for (const leaf of outcome.leaves) walker.add(leaf);
    walker.end(note, name, [publicKey]);
    expect(walker.issues).toEqual([]);
    expect(walker.size).toBe(opened.checkpoint.size);
    const seen = walker.heads.get(tenant.registryId);
    expect([seen?.size, toHex(seen?.root ?? new Uint8Array())]).toEqual([log.size, log.root]);
    expect((await call(null, "GET", `/log/tile/0/000.p/${walker.size}`)).status).toBe(200);
    expect((await call(null, "GET", `/log/tile/entries/000.p/${walker.size}`)).status).toBe(404);
  });
});

function identityOf(log: LogOut): { host: string; owner: string } {
  return { host: log.origin.slice(0, log.origin.indexOf("/")), owner: tenant.id };
}

/** The root to which a leaf's path leads: RFC 6962 section 2.1.1, for the last leaf of a tree. */
function rootOf(index: number, size: number, leaf: Uint8Array, path: readonly Uint8Array[]): Uint8Array {
  let [at, last, hash] = [index, size - 1, leaf];
  for (const sibling of path) {
    while (at % 2 === 0 && at === last) [at, last] = [at / 2, last / 2].map(Math.floor) as [number, number];
    const [left, right] = at % 2 === 1 || at === last ? [sibling, hash] : [hash, sibling];
    hash = pureCrypto.sha256(new Uint8Array([1, ...left, ...right]));
    [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  }
  return hash;
}
