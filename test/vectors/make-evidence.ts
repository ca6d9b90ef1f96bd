/**
 * Vectors of trees, the key registry, heads and bundles.
 *
 * @module
 */
import { fromHex, toBase64, toHex } from "../../shared/bytes.ts";
import { encodeCbor } from "../../shared/cbor/encode.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { RightEdge } from "../../shared/merkle/edge.ts";
import { signCheckpoint } from "../../shared/note/checkpoint.ts";
import { formatVkey, logKey, witnessKey } from "../../shared/note/vkey.ts";
import { decodeRecord, ROLES } from "../../shared/registry/record.ts";
import type { BundleOptions } from "../../shared/verify/bundle.ts";
import { BundleVerifier } from "../../shared/verify/bundle.ts";
import {
  cosignatureLine,
  headOf,
  headOfHeads,
  recordLine,
  serviceLogOf,
  tenantLine,
  tenantLogOf,
} from "../shared/verify/heads-of.ts";
import { bytesOf, fieldsLine, signerOf, T0, TestLog, TestTenant } from "../shared/verify/test-tenant.ts";
import { hexOf } from "./inputs.ts";

export function treeVectors(crypto: CryptoPort): unknown {
  const edge = new RightEdge(crypto);
  const leaves: string[] = [];
  const roots = [toHex(edge.root())];
  for (let i = 0; i < 33; i++) {
    const hash = bytesOf(`leaf/${i}`, 32);
    leaves.push(toHex(hash));
    edge.append(hash);
    roots.push(toHex(edge.root()));
  }
  return { leaf_labels: "leaf/0 to leaf/32", leaf_hashes: leaves, roots_by_size: roots };
}

/** A tenant whose registry went through every operation. */
export function registryTenant(crypto: CryptoPort): TestTenant {
  const tenant = new TestTenant("vectors", crypto);
  const client = tenant.addKey(ROLES.client);
  tenant.rotate();
  tenant.addKey(ROLES.witness);
  tenant.retireKey(client);
  tenant.recover();
  return tenant;
}

const bindingsJson = (bindings: readonly { readonly role: number; readonly key: Uint8Array }[]) =>
  bindings.map(({ role, key }) => [role, toHex(key)]);

export function registryVectors(crypto: CryptoPort): unknown {
  const tenant = registryTenant(crypto);
  return {
    seeds: {
      "genesis, audit": hexOf("vectors/audit/seed", 32),
      "genesis, log": hexOf("vectors/log/seed", 32),
      "genesis, recovery": hexOf("vectors/recovery/seed", 32),
      ...Object.fromEntries([1, 2, 3, 4].map((n) => [`key ${n}`, hexOf(`vectors/key/${n}/seed`, 32)])),
    },
    registry_id: tenant.registryId,
    records: tenant.records.map(({ bytes, signatures }) => {
      const { epoch, prev, time, op, add, retire, genesis } = decodeRecord(bytes);
      return {
        epoch,
        prev: toHex(prev),
        time: String(time),
        op,
        add: bindingsJson(add),
        retire: bindingsJson(retire),
        ...(genesis === null ? {} : { origin: genesis.origin, nonce: toHex(genesis.nonce) }),
        encoded: toHex(bytes),
        hash: toHex(crypto.sha256(bytes)),
        signatures: signatures.map(({ key, signature }) => ({ key: toHex(key), signature: toHex(signature) })),
      };
    }),
  };
}

export function checkpointVectors(crypto: CryptoPort): unknown {
  const origin = `log.example/t/${hexOf("tenant/0", 16)}/p/${hexOf("principal/0", 16)}.1`;
  const sizes = [0, 1, 2, 3, 256, 961_984_011, Number.MAX_SAFE_INTEGER];
  return sizes.flatMap((size) =>
    [["audit/1"], ["audit/2", "audit/1"]].map((labels) => {
      const root = size === 0 ? new RightEdge(crypto).root() : bytesOf(`root/${size}`, 32);
      const signers = labels.map((label) => signerOf(label, crypto));
      return {
        origin,
        size,
        root: toHex(root),
        signers: labels.map((label, i) => {
          const key = signers[i]?.publicKey ?? new Uint8Array();
          const keyId = logKey(crypto, origin, key).keyId.toString(16).padStart(8, "0");
          return { seed: hexOf(`${label}/seed`, 32), key: toHex(key), key_id: keyId };
        }),
        checkpoint: signCheckpoint(crypto, origin, signers, { origin, size, root }),
      };
    }),
  );
}

/** Leaves of a tenant's log of heads. */
export function tenantLogVectors(crypto: CryptoPort): unknown {
  const heads = [1, 2].map((n) => [bytesOf(`log/${n}`, 32), n * 1000, bytesOf(`root/${n}`, 32), n]);
  heads.sort(([a], [b]) => (toHex(a as Uint8Array) < toHex(b as Uint8Array) ? -1 : 1));
  const encoded = encodeCbor(["runseal.heads.v1", bytesOf("registry/0", 32), 7, T0, heads as never]);
  return [
    {
      registry_id: hexOf("registry/0", 32),
      batch: 7,
      time: String(T0),
      heads: heads.map(([logId, size, root, epoch]) => [toHex(logId as Uint8Array), size, toHex(root as Uint8Array), epoch]),
      encoded: toHex(encoded),
      hash: toHex(crypto.sha256(fromHex(`00${toHex(encoded)}`))),
    },
  ];
}

/** The log of the example bundles: values in all sections, a client's signature, a rotation on the way. */
export function exampleLog(crypto: CryptoPort): TestLog {
  const tenant = new TestTenant("example", crypto);
  const client = tenant.addKey(ROLES.client);
  const log = new TestLog(tenant);
  log.append({ kind: "run.created", values: { action: { goal: '"caf\u00e9 \u{1F600} \\u003c\\u2028"' } } });
  log.append({
    kind: "tool.call.started",
    occurredAt: T0,
    call: "call-1",
    actor: { type: "agent", id: "bot", codeHash: bytesOf("code", 32) },
    values: { action: { tool: '"read_file"', args: '{"n":12345678901234567890}' }, authorization: { reason: '"policy"' } },
    authorization: "not_required",
    client,
  });
  tenant.rotate();
  log.append({
    kind: "tool.call.completed",
    call: "call-1",
    submitter: { credential: bytesOf("example/credential", 16), reporter: "host" },
    values: { action: { tool: '"read_file"' }, outcome: { result: "null" } },
    outcome: "success",
  });
  log.append({ kind: "run.completed", values: {} });
  return log;
}

export interface BundleVector {
  readonly name: string;
  readonly options: Omit<BundleOptions, "verifiedBy">;
  readonly lines: readonly string[];
}

/** The example log in its tenant's log, and that in the service's, which a witness cosigned. */
function anchoredCases(crypto: CryptoPort): BundleVector[] {
  const log = exampleLog(crypto);
  const { tenant } = log;
  const heads = tenantLogOf(tenant);
  const bytes = (epoch: number) => tenant.records[epoch]?.bytes ?? new Uint8Array();
  heads.push(bytes(0));
  heads.push(bytes(1));
  const early = heads.list([headOf(log, 2)]);
  const record = heads.push(bytes(2));
  const late = heads.list([headOf(log), headOf(new TestLog(tenant, "other").fill(1))]);
  const service = serviceLogOf(crypto);
  service.list([{ logId: bytesOf("another tenant", 32), size: 1, root: bytesOf("root/1", 32), epoch: 0 }]);
  const at = service.list([headOfHeads(heads)]);
  const signer = signerOf("witness", crypto);
  const witness = witnessKey(crypto, "witness.example/w", signer.publicKey);
  const options = { registryId: tenant.registryId, witnesses: [witness] };
  const lines = log.lines();
  const listed = tenantLine(heads, late, log, 4);
  const cosigned = cosignatureLine(service, at, heads, heads.size, [{ name: witness.name, signer, time: 1_767_225_700n }]);
  // Under the first audit key, over the two entries of its time.
  const old = exampleLog(crypto);
  old.entries.splice(2);
  const retired = old.lines({ checkpoint: old.checkpoint([signerOf("example/audit", crypto)]) });
  return [
    { name: "listed in the tenant's log, which a witness cosigned", options, lines: [...lines, listed, cosigned] },
    { name: "listed in the tenant's log, without a witness", options: { registryId: tenant.registryId }, lines: [...lines, tenantLine(heads, early, log, 2), listed] },
    { name: "a retired key's head, listed before its retirement", options, lines: [...retired, tenantLine(heads, early, old, 2), recordLine(heads, record)] },
    { name: "a retired key's head, not shown to be from before", options, lines: [...retired, tenantLine(heads, early, old, 2)] },
    { name: "more entries are listed than the head has", options, lines: [...old.lines({ checkpoint: old.checkpoint() }), tenantLine(heads, late, log, 4)] },
    { name: "a list of another place", options, lines: [...lines, tenantLine(heads, late, log, 4, { index: early })] },
    { name: "a cosignature over another head", options, lines: [...lines, listed, cosigned.replace(/"index":\d+/, '"index":0')] },
  ];
}

/** Bundles, whole and broken, with what the verifier is given. */
export function bundleCases(crypto: CryptoPort): BundleVector[] {
  const log = exampleLog(crypto);
  const { tenant } = log;
  const lines = log.lines();
  const registry = { registryId: tenant.registryId };
  const at = (t: string, nth = 0) =>
    lines.map((line, i) => ({ line, i })).filter(({ line }) => line.startsWith(`{"t":"${t}"`))[nth]?.i ?? -1;
  const without = (i: number) => lines.filter((_, index) => index !== i);
  const replaced = (i: number, line: string) => lines.map((old, index) => (index === i ? line : old));
  const [first, second] = log.entries;
  const empty = new TestLog(tenant, "empty");
  const stranger = new TestLog(new TestTenant("stranger", crypto)).fill(2);
  const disclosure = fieldsLine("disclosure", { seq: 2, openings: second?.openings.slice(0, 1) ?? [] });
  return [
    { name: "whole, not pinned", options: {}, lines },
    { name: "whole, pinned by the registry id", options: registry, lines },
    { name: "whole, pinned by an older checkpoint", options: { checkpoint: log.checkpoint(undefined, 3) }, lines },
    { name: "whole, with a kept head", options: { ...registry, keptHead: { seq: 2, hash: toHex(second?.hash ?? new Uint8Array()) } }, lines },
    { name: "without values, one disclosed", options: registry, lines: [...log.lines({ values: false }).slice(0, 6), disclosure, ...log.lines({ values: false }).slice(6)] },
    { name: "a range of it", options: registry, lines: log.lines({ from: 2, to: 3 }) },
    { name: "the empty log", options: registry, lines: empty.lines() },
    { name: "another tenant's", options: registry, lines: stranger.lines() },
    { name: "an entry is missing", options: registry, lines: lines.filter((_, i) => i !== at("leaf", 1) && i !== at("content", 1)) },
    { name: "two entries are swapped", options: registry, lines: without(at("leaf", 3)).flatMap((line, i) => (i === at("leaf", 2) ? [lines[at("leaf", 3)] ?? "", line] : [line])) },
    { name: "a value is altered", options: registry, lines: replaced(at("content", 1), (lines[at("content", 1)] ?? "").replace("read_file", "send_file")) },
    { name: "a leaf is altered", options: registry, lines: replaced(at("leaf", 1), (lines[at("leaf", 1)] ?? "").replace(/"leaf":"(.{40})./, '"leaf":"$1A')) },
    { name: "an entry is of another log", options: registry, lines: replaced(at("leaf"), JSON.stringify({ t: "leaf", seq: 1, hash: toHex(stranger.entries[0]?.hash ?? new Uint8Array()), leaf: toBase64(stranger.entries[0]?.bytes ?? new Uint8Array()) })) },
    { name: "the last entries are missing", options: registry, lines: log.lines().filter((_, i) => i !== at("leaf", 3)) },
    { name: "cut inside a line", options: registry, lines: [...lines.slice(0, at("leaf", 2)), (lines[at("leaf", 2)] ?? "").slice(0, 100)] },
    { name: "a head of another size", options: registry, lines: replaced(at("checkpoint"), JSON.stringify({ t: "checkpoint", checkpoint: log.checkpoint(undefined, 3) })) },
    { name: "a kept head that is another", options: { ...registry, keptHead: { seq: 2, hash: toHex(first?.hash ?? new Uint8Array()) } }, lines },
    ...anchoredCases(crypto),
    { name: "a line of a later version", options: registry, lines: [...lines, '{"t":"novelty"}'] },
  ];
}

export function bundleVectors(crypto: CryptoPort): unknown {
  return bundleCases(crypto).map(({ name, options, lines }) => {
    const verifier = new BundleVerifier(crypto, { ...options, verifiedBy: "vectors" });
    for (const line of lines) verifier.line(line);
    const { verdict, pinned, issues } = verifier.finish();
    return {
      name,
      given: {
        ...(options.registryId === undefined ? {} : { registry_id: options.registryId }),
        ...(options.checkpoint === undefined ? {} : { checkpoint: options.checkpoint }),
        ...(options.keptHead === undefined ? {} : { head: `${options.keptHead.seq}:${options.keptHead.hash}` }),
        ...(options.witnesses === undefined ? {} : { witnesses: options.witnesses.map(formatVkey) }),
      },
      lines,
      verdict,
      pinned,
      issues: issues.map(({ seq, code }) => ({ seq, code })),
    };
  });
}
