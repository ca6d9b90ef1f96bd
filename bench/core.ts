/**
 * The core alone beside plain SHA-256 and beside other signed append-only logs of npm, in one process, in processor
 * time; and what an append costs in logs of 10^3 to 10^6 entries.
 *
 * @module
 */
import { createHash } from "node:crypto";
import type { CoreEntry } from "./core-log.ts";
import { CoreLog, coreEntry, manyHashes } from "./core-log.ts";
import { toolCallEntries } from "./entries.ts";
import type { Peer } from "./peers.ts";
import { openPeers } from "./peers.ts";
import type { Comparison } from "./table.ts";
import { compare } from "./table.ts";

const BATCH = 100;
/** Rounds before the first that counts: both sides run as compiled code from then on. */
const WARM_ROUNDS = 5;
const SIZES = [1e3, 1e4, 1e5, 1e6];

function batches(prefix: string, count: number): string[][] {
  return Array.from({ length: count }, (_, i) => toolCallEntries(`${prefix}-${i}`, BATCH));
}

/** Entries a second of processor time. */
async function rate(entries: number, work: () => void | Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return entries / ((user + system) / 1e6);
}

function appendAll(log: CoreLog, commits: readonly (readonly CoreEntry[])[]): void {
  for (const entries of commits) log.append(entries);
}

function coreEntries(all: readonly (readonly string[])[]): CoreEntry[][] {
  return all.map((texts) => texts.map(coreEntry));
}

/** @param count batches a round */
export async function benchCore(rounds: number, count: number): Promise<Comparison[]> {
  const log = new CoreLog();
  const entries = count * BATCH;
  const ours = (round: number, name: string) => {
    const bodies = coreEntries(batches(`${name}${round}`, count));
    return rate(entries, () => appendAll(log, bodies));
  };
  for (let round = 0; round < WARM_ROUNDS; round++) await ours(round, "warm");
  const out: Comparison[] = [
    await compare("the core, 100 entries a commit, beside one SHA-256 of each text (entries/s)", rounds, {
      ours: (round) => ours(round, "sha"),
      floor: (round) => {
        const texts = batches(`sha${round}`, count).flat();
        return rate(entries, () => {
          for (const text of texts) createHash("sha256").update(text).digest();
        });
      },
    }),
  ];
  for (const peer of await openPeers()) out.push(await besidePeer(peer, rounds, count, ours));
  out.push(...(await bySize(rounds, count)));
  return out;
}

async function besidePeer(
  peer: Peer,
  rounds: number,
  count: number,
  ours: (round: number, name: string) => Promise<number>,
): Promise<Comparison> {
  for (const texts of batches(`${peer.name}-warm`, count)) await peer.append(texts);
  const comparison = await compare(`the core beside ${peer.name} (entries/s)`, rounds, {
    ours: (round) => ours(round, peer.name),
    floor: (round) => {
      const all = batches(`${peer.name}${round}`, count);
      return rate(count * BATCH, async () => {
        for (const texts of all) await peer.append(texts);
      });
    },
  });
  await peer.close();
  return comparison;
}

/** The cost of an append in a long log beside that in one of 10^3 entries. */
async function bySize(rounds: number, count: number): Promise<Comparison[]> {
  const logs = SIZES.map((size) => {
    const log = new CoreLog();
    for (const hashes of manyHashes(size)) log.fill(hashes);
    return { size, log };
  });
  const [short, ...long] = logs;
  if (short === undefined) return [];
  const out: Comparison[] = [];
  for (const { size, log } of long) {
    const side = (of: CoreLog) => (round: number) => {
      const bodies = coreEntries(batches(`${size}-${round}`, count));
      return rate(count * BATCH, () => appendAll(of, bodies));
    };
    out.push(
      await compare(
        `the core: a log of ${size.toLocaleString("en")} beside one of ${short.size.toLocaleString("en")} (entries/s)`,
        rounds,
        { ours: side(log), floor: side(short.log) },
      ),
    );
  }
  return out;
}
