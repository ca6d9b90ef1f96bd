/**
 * Logs of heads made in memory: a tenant's over its logs, the service's over the tenants', and the lines of a bundle
 * that show what is in them.
 *
 * @module
 */
import { toBase64, toHex, utf8 } from "../../../shared/bytes.ts";
import type { Signer } from "../../../shared/crypto/port.ts";
import { tenantOrigin } from "../../../shared/entry/log-id.ts";
import { encodeHeadsLeaf } from "../../../shared/heads/leaf.ts";
import { RightEdge } from "../../../shared/merkle/edge.ts";
import { leafHash } from "../../../shared/merkle/hash.ts";
import { consistencyNodes, foldProof, inclusionNodes } from "../../../shared/merkle/proof.ts";
import { signCheckpoint } from "../../../shared/note/checkpoint.ts";
import { cosign } from "../../../shared/note/cosignature.ts";
import { addSignatures, parseNote } from "../../../shared/note/signed-note.ts";
import { formatVkey, logKey } from "../../../shared/note/vkey.ts";
import { HOST, signerOf, T0, type TestLog, type TestTenant } from "./test-tenant.ts";

type Crypto = TestTenant["crypto"];

/** Any list of leaf hashes as a tree with its proofs. */
class Tree {
  readonly crypto: Crypto;
  readonly hashes: Uint8Array[];

  constructor(crypto: Crypto, hashes: Uint8Array[]) {
    this.crypto = crypto;
    this.hashes = hashes;
  }

  root(begin = 0, end = this.hashes.length): Uint8Array {
    const edge = new RightEdge(this.crypto);
    for (const hash of this.hashes.slice(begin, end)) edge.append(hash);
    return edge.root();
  }

  #fold(plan: Parameters<typeof foldProof>[1]): string[] {
    const nodes = plan.nodes.map(({ level, index }) =>
      this.root(index * 2 ** level, (index + 1) * 2 ** level),
    );
    return foldProof(this.crypto, plan, nodes).map(toHex);
  }

  inclusion(index: number, size: number): string[] {
    return this.#fold(inclusionNodes(index, size));
  }

  consistency(from: number, to: number): string[] {
    return from === to ? [] : this.#fold(consistencyNodes(from, to));
  }
}

export interface Listed {
  logId: Uint8Array;
  size: number;
  root: Uint8Array;
  epoch: number;
}

export class TestHeadLog {
  readonly crypto: Crypto;
  readonly origin: string;
  readonly registryId: Uint8Array;
  readonly leaves: Uint8Array[] = [];
  signer: Signer;
  #batch = 0;

  constructor(crypto: Crypto, origin: string, registryId: Uint8Array, signer: Signer) {
    this.crypto = crypto;
    this.origin = origin;
    this.registryId = registryId;
    this.signer = signer;
  }

  get tree(): Tree {
    return new Tree(
      this.crypto,
      this.leaves.map((leaf) => leafHash(this.crypto, leaf)),
    );
  }

  get size(): number {
    return this.leaves.length;
  }

  /** Adds any leaf; gives its index. */
  push(leaf: Uint8Array): number {
    this.leaves.push(leaf);
    return this.leaves.length - 1;
  }

  list(heads: readonly Listed[], registryId = this.registryId): number {
    this.#batch += 1;
    const sorted = [...heads].sort((a, b) => (toHex(a.logId) < toHex(b.logId) ? -1 : 1));
    const time = T0 + BigInt(this.#batch) * 1_000_000_000n;
    return this.push(encodeHeadsLeaf({ registryId, batch: this.#batch, time, heads: sorted }));
  }

  checkpoint(size = this.size, signers: readonly Signer[] = [this.signer]): string {
    const { origin } = this;
    return signCheckpoint(this.crypto, origin, signers, { origin, size, root: this.tree.root(0, size) });
  }

  /** The members of a line that shows the leaf. */
  proof(index: number, size = this.size) {
    return {
      index,
      leaf: toBase64(this.leaves[index] ?? new Uint8Array()),
      path: this.tree.inclusion(index, size),
    };
  }
}

/** The head of a log at a size, as a list of heads has it. */
export function headOf(log: TestLog, size = log.entries.length): Listed {
  const tree = treeOf(log);
  return { logId: log.logId, size, root: tree.root(0, size), epoch: log.tenant.chain.epoch };
}

export function treeOf(log: TestLog): Tree {
  return new Tree(
    log.tenant.crypto,
    log.entries.map(({ hash }) => hash),
  );
}

export function tenantLogOf(tenant: TestTenant): TestHeadLog {
  const origin = tenantOrigin(HOST, tenant.id);
  return new TestHeadLog(tenant.crypto, origin, tenant.chain.registryId, tenant.log);
}

/** A service's log; its vkey names it. */
export function serviceLogOf(crypto: Crypto, label = "service", host = HOST): TestHeadLog & { vkey: string } {
  const signer = signerOf(`${label}/log`, crypto);
  const vkey = formatVkey(logKey(crypto, host, signer.publicKey));
  const log = new TestHeadLog(crypto, host, crypto.sha256(utf8(vkey)), signer);
  return Object.assign(log, { vkey });
}

/** A line that shows where the log is listed with `listed` entries. */
export function tenantLine(
  heads: TestHeadLog,
  index: number,
  log: TestLog,
  listed: number,
  change: Record<string, unknown> = {},
): string {
  const consistency = treeOf(log).consistency(listed, log.entries.length);
  return JSON.stringify({
    t: "tenant",
    checkpoint: heads.checkpoint(),
    ...heads.proof(index),
    consistency,
    ...change,
  });
}

/** A line that shows that a registry record is a leaf. */
export function recordLine(heads: TestHeadLog, index: number): string {
  return JSON.stringify({
    t: "tenant",
    checkpoint: heads.checkpoint(),
    ...heads.proof(index),
    consistency: [],
  });
}

/** A line that shows that the tenant's log is listed with `listed` leaves; cosigned by each witness at a time. */
export function cosignatureLine(
  service: TestHeadLog & { vkey: string },
  index: number,
  heads: TestHeadLog,
  listed: number,
  witnesses: readonly { name: string; signer: Signer; time: bigint }[] = [],
  change: Record<string, unknown> = {},
): string {
  const note = service.checkpoint();
  const { text } = parseNote(note);
  const lines = witnesses.map(({ name, signer, time }) => cosign(service.crypto, name, signer, text, time));
  return JSON.stringify({
    t: "cosignature",
    vkey: service.vkey,
    checkpoint: lines.length === 0 ? note : addSignatures(note, lines),
    ...service.proof(index),
    consistency: heads.tree.consistency(listed, heads.size),
    ...change,
  });
}

/** The head of a log of heads, as the service's log lists it. */
export function headOfHeads(heads: TestHeadLog, size = heads.size): Listed {
  return { logId: heads.registryId, size, root: heads.tree.root(0, size), epoch: 0 };
}
