/**
 * The mirror in R2: full hash tiles and entry bundles, written once and never again, and the
 * latest checkpoint, in the C2SP tlog-tiles layout under the log's prefix. Before the checkpoint is replaced, the
 * one that is there is checked to be a head of this same log.
 *
 * @module
 */
import { equalBytes } from "../../shared/bytes.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { encodeEntryBundle } from "../../shared/merkle/bundle.ts";
import { RightEdge } from "../../shared/merkle/edge.ts";
import { HASH_BYTES } from "../../shared/merkle/hash.ts";
import { coverRange } from "../../shared/merkle/nodes.ts";
import { entriesPath, TILE_WIDTH, tilePath } from "../../shared/merkle/tiles.ts";
import { parseCheckpoint } from "../../shared/note/checkpoint.ts";
import { breathe } from "../breathe.ts";
import type { TileTree } from "./tile-tree.ts";

export interface MirrorContext {
  readonly crypto: CryptoPort;
  readonly tree: TileTree;
  /** `count` leaves from the `first` on, which counts from 1. */
  readonly leaves: (first: number, count: number) => Uint8Array[];
  readonly bucket: R2Bucket;
  /** Key prefix of the log. */
  readonly prefix: string;
  readonly origin: string;
}

/** How a head that somebody kept relates to the log. Its signatures are not looked at. */
export interface NoteCheck {
  readonly kind: "consistent" | "ahead" | "fork";
  readonly size: number;
  readonly checkpoint: string;
}

/** The same of the mirrored head. */
export type MirrorCheck = { readonly kind: "none" } | (NoteCheck & { readonly etag: string });

/** The root of the log's first `size` leaves. */
export function rootAt(context: Pick<MirrorContext, "crypto" | "tree">, size: number): Uint8Array {
  const nodes = coverRange(0, size).map((node) => context.tree.node(node));
  return RightEdge.fromHashes(context.crypto, size, nodes).root();
}

/** Compares a checkpoint with the log, whose size is this. Throws a decoding `RunsealError` where it is none. */
export function checkNote(
  context: Pick<MirrorContext, "crypto" | "tree" | "origin">,
  checkpoint: string,
  size: number,
): NoteCheck {
  const kept = parseCheckpoint(checkpoint).checkpoint;
  const about = { size: kept.size, checkpoint };
  if (kept.origin !== context.origin) return { kind: "fork", ...about };
  if (kept.size > size) return { kind: "ahead", ...about };
  const same = equalBytes(rootAt(context, kept.size), kept.root);
  return { kind: same ? "consistent" : "fork", ...about };
}

/** Reads the mirrored checkpoint and compares it with the log. Throws what R2 throws. */
export async function checkMirror(context: MirrorContext, size: number): Promise<MirrorCheck> {
  const object = await context.bucket.get(`${context.prefix}/checkpoint`);
  if (object === null) return { kind: "none" };
  return { ...checkNote(context, await object.text(), size), etag: object.etag };
}

/** A put that creates and never replaces; an object that is there must hold the same bytes. */
async function createOnly(bucket: R2Bucket, key: string, bytes: Uint8Array): Promise<boolean> {
  const put = await bucket.put(key, bytes, { onlyIf: new Headers({ "If-None-Match": "*" }) });
  if (put !== null) return true;
  const there = await bucket.get(key);
  return there !== null && equalBytes(new Uint8Array(await there.arrayBuffer()), bytes);
}

/** Tiles after which the progress is noted: to note it costs a transaction, and not to, some puts more after a crash. */
const TILES_A_NOTE = 32;

/**
 * Writes the tiles and bundles that became full since `archivedSeq`. Throws what R2 throws.
 *
 * @param archived called now and then, and at the end, with the sequence number up to which everything is archived
 * @returns whether all are; false: another object is where one of them belongs
 */
export async function archiveTiles(
  context: MirrorContext,
  archivedSeq: number,
  size: number,
  archived: (seq: number) => void,
): Promise<boolean> {
  let noted = archivedSeq;
  let seq = archivedSeq;
  try {
    for (; seq + TILE_WIDTH <= size; seq += TILE_WIDTH) {
      if (seq - noted >= TILES_A_NOTE * TILE_WIDTH) {
        archived(seq);
        noted = seq;
      }
      if (!(await archiveTile(context, seq / TILE_WIDTH))) return false;
      await breathe();
    }
    return true;
  } finally {
    if (seq > noted) archived(seq);
  }
}

/** Puts one tile of the lowest level, its bundle, and the tiles above that become full with it. */
async function archiveTile({ bucket, prefix, tree, leaves }: MirrorContext, tile: number): Promise<boolean> {
  const bundle = encodeEntryBundle(leaves(tile * TILE_WIDTH + 1, TILE_WIDTH));
  const puts: [string, Uint8Array][] = [[`${prefix}/${entriesPath(tile)}`, bundle]];
  // Each upper tile becomes full together with the last tile below it.
  for (let level = 0, index = tile; ; level++) {
    const hashes = tree.tile(level, index);
    if (hashes === null || hashes.length < TILE_WIDTH * HASH_BYTES) break;
    puts.push([`${prefix}/${tilePath(level, index)}`, hashes]);
    if ((index + 1) % TILE_WIDTH !== 0) break;
    index = Math.floor(index / TILE_WIDTH);
  }
  const put = await Promise.all(puts.map(([key, bytes]) => createOnly(bucket, key, bytes)));
  return put.every((same) => same);
}

/**
 * Replaces the mirrored checkpoint, if it is the one that was checked.
 *
 * @returns whether it was replaced; false: somebody else wrote it meanwhile
 */
export async function putCheckpoint(
  context: MirrorContext,
  checked: MirrorCheck,
  checkpoint: string,
): Promise<boolean> {
  const onlyIf =
    checked.kind === "consistent" ? { etagMatches: checked.etag } : new Headers({ "If-None-Match": "*" });
  const put = await context.bucket.put(`${context.prefix}/checkpoint`, checkpoint, {
    onlyIf,
    httpMetadata: { contentType: "text/plain; charset=utf-8" },
  });
  return put !== null;
}
