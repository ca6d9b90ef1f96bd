/**
 * A tenant and its logs, made in memory and always the same for the same name: what the service would write, and
 * whatever a forger would.
 *
 * @module
 */

import { nativeCrypto } from "../../../native/crypto.ts";
import { concat, toBase64, toHex, utf8 } from "../../../shared/bytes.ts";
import type { CryptoPort, Signer } from "../../../shared/crypto/port.ts";
import type { FieldOpening } from "../../../shared/entry/commitment.ts";
import { commitField } from "../../../shared/entry/commitment.ts";
import type { Commitments, Leaf, LeafBody } from "../../../shared/entry/leaf.ts";
import { encodeLeaf, encodeStatement } from "../../../shared/entry/leaf.ts";
import type { LogName } from "../../../shared/entry/log-id.ts";
import { computeLogId, formatOrigin, tenantOrigin } from "../../../shared/entry/log-id.ts";
import { RightEdge } from "../../../shared/merkle/edge.ts";
import { leafHash } from "../../../shared/merkle/hash.ts";
import { signCheckpoint } from "../../../shared/note/checkpoint.ts";
import { RegistryChain } from "../../../shared/registry/chain.ts";
import type { Binding, Op, RegistryRecord, Role, SignedRecord } from "../../../shared/registry/record.ts";
import { compareBindings, genesisRecord, OPS, ROLES, signRecord } from "../../../shared/registry/record.ts";
import { signedMessage } from "../../../shared/signing.ts";

export const HOST = "log.example";
/** 2026-01-01T00:00:00Z in nanoseconds. */
export const T0 = 1_767_225_600_000_000_000n;

/** Bytes that look random and are always the same for the same label: SHA-256 of the label and a counter. */
export function bytesOf(label: string, length: number): Uint8Array {
  let out = new Uint8Array();
  for (let i = 0; out.length < length; i++)
    out = concat(out, nativeCrypto.sha256(utf8(`${label}/${i}`))) as typeof out;
  return out.slice(0, length);
}

/** A key pair whose seed is made of the label. */
export function signerOf(label: string, crypto: CryptoPort = nativeCrypto): Signer {
  return crypto.signer(bytesOf(`${label}/seed`, 32));
}

export class TestTenant {
  readonly name: string;
  readonly crypto: CryptoPort;
  readonly id: string;
  readonly records: SignedRecord[] = [];
  readonly chain: RegistryChain;
  readonly recovery: Signer;
  log: Signer;
  /** The audit key of the latest epoch. */
  audit: Signer;
  #keys = 0;

  /** @param id the tenant's id; a forger takes another's */
  constructor(name: string, crypto: CryptoPort = nativeCrypto, id = toHex(bytesOf(`${name}/tenant`, 16))) {
    this.name = name;
    this.crypto = crypto;
    this.id = id;
    this.chain = new RegistryChain(crypto);
    this.audit = signerOf(`${name}/audit`, crypto);
    this.log = signerOf(`${name}/log`, crypto);
    this.recovery = signerOf(`${name}/recovery`, crypto);
    const add: Binding[] = [
      { role: ROLES.audit, key: this.audit.publicKey },
      { role: ROLES.log, key: this.log.publicKey },
      { role: ROLES.recovery, key: this.recovery.publicKey },
    ];
    const signers = [this.audit, this.log, this.recovery];
    const nonce = bytesOf(`${name}/nonce`, 16);
    this.#add(genesisRecord({ origin: tenantOrigin(HOST, this.id), nonce, time: T0, add }), signers);
  }

  get registryId(): string {
    return toHex(this.chain.registryId);
  }

  #add(record: RegistryRecord, signers: readonly Signer[]): void {
    const signed = signRecord(this.crypto, record, signers);
    this.chain.add(signed);
    this.records.push(signed);
  }

  /** The next record, not yet signed or added. */
  next(op: Op, add: readonly Binding[], retire: readonly Binding[]): RegistryRecord {
    const epoch = this.chain.epoch + 1;
    return {
      epoch,
      prev: this.chain.head,
      time: T0 + BigInt(epoch) * 1_000_000_000n,
      op,
      add: [...add].sort(compareBindings),
      retire: [...retire].sort(compareBindings),
      genesis: null,
    };
  }

  newSigner(): Signer {
    this.#keys += 1;
    return signerOf(`${this.name}/key/${this.#keys}`, this.crypto);
  }

  /** Replaces the audit key; gives the old one. */
  rotate(): Signer {
    const [old, added] = [this.audit, this.newSigner()];
    const role = ROLES.audit;
    this.#add(this.next(OPS.rotate, [{ role, key: added.publicKey }], [{ role, key: old.publicKey }]), [
      old,
      added,
    ]);
    this.audit = added;
    return old;
  }

  /** Replaces the log key; gives the old one. */
  rotateLog(): Signer {
    const [old, added] = [this.log, this.newSigner()];
    const role = ROLES.log;
    this.#add(this.next(OPS.rotate, [{ role, key: added.publicKey }], [{ role, key: old.publicKey }]), [
      old,
      added,
    ]);
    this.log = added;
    return old;
  }

  /** Replaces the audit key with the recovery key, as after its loss; gives the old one. */
  recover(): Signer {
    const [old, added] = [this.audit, this.newSigner()];
    const role = ROLES.audit;
    this.#add(this.next(OPS.recover, [{ role, key: added.publicKey }], [{ role, key: old.publicKey }]), [
      added,
      this.recovery,
    ]);
    this.audit = added;
    return old;
  }

  addKey(role: Role = ROLES.client): Signer {
    const added = this.newSigner();
    this.#add(this.next(OPS.add, [{ role, key: added.publicKey }], []), [added, this.audit]);
    return added;
  }

  retireKey(key: Signer, role: Role = ROLES.client): void {
    this.#add(this.next(OPS.retire, [], [{ role, key: key.publicKey }]), [this.audit]);
  }
}

/** Values by section and field, as JSON texts. */
export type Values = Readonly<Partial<Record<FieldOpening["section"], Readonly<Record<string, string>>>>>;

/** Who writes an entry, and what: what is left out is null, or made of the place. */
export type EntryPlan = Partial<Omit<LeafBody, "action" | "authorization" | "outcome" | "client">> & {
  readonly values?: Values;
  readonly authorization?: string;
  readonly outcome?: string;
  readonly client?: Signer;
  /** Changes the finished leaf: what only a forger would do. */
  readonly forge?: (leaf: Leaf) => Leaf;
};

export interface TestEntry {
  readonly seq: number;
  readonly leaf: Leaf;
  readonly bytes: Uint8Array;
  readonly hash: Uint8Array;
  readonly openings: readonly FieldOpening[];
}

const DEFAULT_VALUES: Values = { action: { tool: '"read_file"', args: '{"path":"/tmp/a"}' } };

export class TestLog {
  readonly tenant: TestTenant;
  readonly label: string;
  readonly logName: LogName;
  readonly logId: Uint8Array;
  readonly entries: TestEntry[] = [];
  readonly edge: RightEdge;
  #epochOfLast = 0;

  /** @param as the tenant whose principal it is: a forger takes another's */
  constructor(tenant: TestTenant, label = "log", generation = 1, as = tenant.name) {
    this.tenant = tenant;
    this.label = `${tenant.name}/${label}`;
    const principal = toHex(bytesOf(`${as}/${label}/principal`, 16));
    this.logName = { host: HOST, tenant: tenant.id, principal, generation };
    this.logId = computeLogId(tenant.crypto, tenant.chain.registryId, principal, generation);
    this.edge = new RightEdge(tenant.crypto);
  }

  get origin(): string {
    return formatOrigin(this.logName);
  }

  append(plan: EntryPlan = {}): TestEntry {
    const { crypto, chain, audit } = this.tenant;
    const { values = DEFAULT_VALUES, authorization, outcome, client, forge, ...names } = plan;
    const seq = this.edge.size + 1;
    const openings: FieldOpening[] = [];
    const commit = (section: FieldOpening["section"]): Commitments => {
      const out = new Map<string, Uint8Array>();
      for (const [name, text] of Object.entries(values[section] ?? {})) {
        const salt = bytesOf(`${this.label}/${seq}/${section}/${name}/salt`, 16);
        openings.push({ section, name, salt, text });
        out.set(name, commitField(crypto, { section, name, salt, text }));
      }
      return out;
    };
    const body: LeafBody = {
      occurredAt: null,
      id: `e-${seq}`,
      kind: "tool.call.started",
      session: null,
      run: "run-1",
      step: null,
      call: null,
      actor: null,
      submitter: { credential: bytesOf(`${this.tenant.name}/credential`, 16), reporter: "agent" },
      ...names,
      action: commit("action"),
      authorization:
        authorization === undefined ? null : { tag: authorization, fields: commit("authorization") },
      outcome: outcome === undefined ? null : { tag: outcome, fields: commit("outcome") },
      client: null,
    };
    const signed: LeafBody =
      client === undefined
        ? body
        : {
            ...body,
            client: {
              key: client.publicKey,
              signature: client.sign(
                signedMessage("client", crypto.sha256(encodeStatement(this.logId, body))),
              ),
            },
          };
    const leaf: Leaf = {
      ...signed,
      logId: this.logId,
      seq,
      prev: this.entries.at(-1)?.hash ?? this.logId,
      recordedAt: T0 + BigInt(seq) * 1000n,
      epoch: chain.epoch,
      key: audit.publicKey,
    };
    const finished = forge === undefined ? leaf : forge(leaf);
    const bytes = encodeLeaf(finished);
    const entry = { seq, leaf: finished, bytes, hash: leafHash(crypto, bytes), openings };
    this.entries.push(entry);
    this.edge.append(entry.hash);
    this.#epochOfLast = chain.epoch;
    return entry;
  }

  /** Appends that many entries, each with its own value. */
  fill(count: number): this {
    for (let i = 0; i < count; i++) {
      this.append({ values: { action: { tool: '"read_file"', args: `{"path":"/tmp/${this.edge.size}"}` } } });
    }
    return this;
  }

  get head(): { readonly size: number; readonly root: Uint8Array } {
    return { size: this.edge.size, root: this.edge.root() };
  }

  get epochOfLast(): number {
    return this.#epochOfLast;
  }

  /** The signed head over the first `size` entries. */
  checkpoint(
    signers: readonly Signer[] = [this.tenant.audit],
    size = this.entries.length,
    origin = this.origin,
  ): string {
    const edge = new RightEdge(this.tenant.crypto);
    for (const { hash } of this.entries.slice(0, size)) edge.append(hash);
    return signCheckpoint(this.tenant.crypto, origin, signers, { origin, size, root: edge.root() });
  }

  /** The signed head over all entries, for a log whose entries were not kept. */
  checkpointOfEdge(): string {
    const { origin, head } = this;
    return signCheckpoint(this.tenant.crypto, origin, [this.tenant.audit], { origin, ...head });
  }

  /** The bundle's lines. */
  lines(options: BundleParts = {}): string[] {
    const size = this.entries.length;
    const { from = 1, to = size, values = true, withhold = [], checkpoint = this.checkpoint() } = options;
    return [
      headerLine(this, from, to),
      ...this.tenant.records.map(registryLine),
      ...this.entries.flatMap((entry) => {
        if (entry.seq < from || entry.seq > to || withhold.includes(entry.seq)) return [hashLine(entry)];
        return values && entry.openings.length > 0
          ? [leafLine(entry), fieldsLine("content", entry)]
          : [leafLine(entry)];
      }),
      JSON.stringify({ t: "checkpoint", checkpoint }),
    ];
  }
}

export interface BundleParts {
  readonly from?: number;
  readonly to?: number;
  readonly values?: boolean;
  readonly withhold?: readonly number[];
  readonly checkpoint?: string;
}

export function headerLine(log: TestLog, from: number, to: number): string {
  return JSON.stringify({
    runseal: "bundle.v1",
    registry_id: log.tenant.registryId,
    origin: log.origin,
    from,
    to,
  });
}

export function registryLine(record: SignedRecord, epoch: number): string {
  const signatures = record.signatures.map(({ key, signature }) => ({
    key: toHex(key),
    signature: toHex(signature),
  }));
  return JSON.stringify({ t: "registry", epoch, record: toBase64(record.bytes), signatures });
}

export function leafLine({ seq, hash, bytes }: Pick<TestEntry, "seq" | "hash" | "bytes">): string {
  return JSON.stringify({ t: "leaf", seq, hash: toHex(hash), leaf: toBase64(bytes) });
}

export function hashLine({ seq, hash }: Pick<TestEntry, "seq" | "hash">): string {
  return JSON.stringify({ t: "hash", seq, hash: toHex(hash) });
}

export function fieldsLine(
  t: "content" | "disclosure",
  { seq, openings }: Pick<TestEntry, "seq" | "openings">,
): string {
  const fields = openings.map(({ section, name, salt, text }) => ({
    section,
    name,
    salt: toHex(salt),
    text,
  }));
  return JSON.stringify({ t, seq, fields });
}
