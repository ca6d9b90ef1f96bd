/**
 * The core alone, in memory: the commitments of an entry's values, its leaf, the hash, the tree, the signed head, by the
 * code that the service runs, without HTTP, parser and storage.
 *
 * @module
 */
import { signHead } from "../durable-objects/principal-log/head-signing.ts";
import type { TileStore } from "../durable-objects/tile-store/tile-table.ts";
import { TileTree } from "../durable-objects/tile-store/tile-tree.ts";
import { nativeCrypto } from "../native/crypto.ts";
import { randomSource } from "../native/random-source.ts";
import { utf8 } from "../shared/bytes.ts";
import type { SectionName } from "../shared/entry/commitment.ts";
import { FieldCommitter } from "../shared/entry/commitment.ts";
import type { LeafBody } from "../shared/entry/leaf.ts";
import { encodeLeafBody, LeafSealer } from "../shared/entry/leaf.ts";
import { canonicalJson } from "../shared/json/canonical.ts";
import { RightEdge } from "../shared/merkle/edge.ts";
import type { TreeNode } from "../shared/merkle/nodes.ts";
import { Slab } from "../shared/slab.ts";

/** An entry whose values are canonical texts already: what is measured begins behind the parser. */
export interface CoreEntry {
  readonly id: string;
  readonly kind: string;
  readonly run: string;
  readonly step: string;
  readonly call: string;
  readonly action: readonly (readonly [string, string])[];
  readonly authorization?: undefined;
  readonly outcome: readonly (readonly [string, string])[] | null;
}

interface Sent extends Pick<CoreEntry, "id" | "kind" | "run" | "step" | "call"> {
  readonly action: Readonly<Record<string, unknown>>;
  readonly outcome?: Readonly<Record<string, unknown>>;
}

/** The entry of a JSON text. */
export function coreEntry(text: string): CoreEntry {
  const { id, kind, run, step, call, action, outcome } = JSON.parse(text) as Sent;
  const texts = (section: Readonly<Record<string, unknown>>) =>
    Object.entries(section)
      .filter(([name]) => name !== "status")
      .map(([name, value]) => [name, canonicalJson(JSON.stringify(value))] as const);
  return {
    id,
    kind,
    run,
    step,
    call,
    action: texts(action),
    outcome: outcome === undefined ? null : texts(outcome),
  };
}

/** Tiles in memory. */
export class MemoryTiles implements TileStore {
  readonly #tiles = new Map<string, Uint8Array>();

  tile(level: number, tile: number): Uint8Array | null {
    return this.#tiles.get(`${level}/${tile}`) ?? null;
  }

  setTile(level: number, tile: number, hashes: Uint8Array): void {
    this.#tiles.set(`${level}/${tile}`, hashes);
  }
}

const CREDENTIAL = new Uint8Array(16);
const SEED = new Uint8Array(32).fill(7);
const LOG_ID = new Uint8Array(32).fill(1);
const ORIGIN = `bench.local/t/${"00".repeat(16)}/p/${"00".repeat(16)}.1`;

export class CoreLog {
  readonly tree: TileTree;
  #edge = new RightEdge(nativeCrypto);
  #prev: Uint8Array = LOG_ID;
  readonly #signer = nativeCrypto.signer(SEED);
  readonly #sealer = new LeafSealer({ logId: LOG_ID, epoch: 0, key: this.#signer.publicKey });
  readonly #committer = new FieldCommitter(nativeCrypto);
  readonly #bodies = new Slab();
  readonly #random = randomSource();

  constructor(tiles: TileStore = new MemoryTiles()) {
    this.tree = new TileTree(tiles, nativeCrypto);
  }

  get size(): number {
    return this.#edge.size;
  }

  /** Leaves by their hashes alone, to make the log long. */
  fill(hashes: readonly Uint8Array[]): void {
    this.#add(hashes);
    this.#prev = hashes.at(-1) ?? this.#prev;
  }

  /** One commit of entries; answers the signed head. */
  append(entries: readonly CoreEntry[]): string {
    const hashes: Uint8Array[] = [];
    let seq = this.size;
    for (const entry of entries) {
      seq += 1;
      const body = encodeLeafBody(this.#bodyOf(entry), this.#bodies);
      const hashed = this.#sealer.hashed(seq, this.#prev, 1_764_000_000_000_000_000n, body);
      const hash = nativeCrypto.sha256(hashed);
      this.#prev = hash;
      hashes.push(hash);
    }
    this.#add(hashes);
    return signHead(nativeCrypto, ORIGIN, this.#signer, null, { size: this.size, root: this.#edge.root() });
  }

  #bodyOf(entry: CoreEntry): LeafBody {
    const commit = (section: SectionName) => {
      const fields = new Map<string, Uint8Array>();
      for (const [name, text] of entry[section] ?? []) {
        fields.set(name, this.#committer.commit(section, name, this.#random(16), text).commitment);
      }
      return fields;
    };
    return {
      occurredAt: 1_764_000_000_000_000_000n,
      id: entry.id,
      kind: entry.kind,
      session: null,
      run: entry.run,
      step: entry.step,
      call: entry.call,
      actor: null,
      submitter: { credential: CREDENTIAL, reporter: "agent" },
      action: commit("action"),
      authorization: null,
      outcome: entry.outcome === null ? null : { tag: "success", fields: commit("outcome") },
      client: null,
    };
  }

  #add(hashes: readonly Uint8Array[]): void {
    const completed: TreeNode[] = [];
    for (const hash of hashes) completed.push(...this.#edge.take(hash));
    this.tree.adopt(this.#edge.size, this.tree.write(hashes, completed));
  }
}

/** Leaf hashes that stand for entries. */
export function* manyHashes(count: number): Generator<Uint8Array[]> {
  for (let at = 0; at < count; at += 1000) {
    yield Array.from({ length: Math.min(1000, count - at) }, (_, i) =>
      nativeCrypto.sha256(utf8(`leaf ${at + i}`)),
    );
  }
}
