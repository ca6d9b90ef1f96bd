/**
 * Proofs from tiles in memory, in logs of 10^3 to 10^6 leaves: their lengths, and the processor time that making and
 * checking one takes. Both grow with the logarithm of the size.
 *
 * @module
 */

import { rootAt } from "../durable-objects/tile-store/mirror.ts";
import { consistencyPath, hashList, inclusionPaths } from "../durable-objects/tile-store/proofs.ts";
import { nativeCrypto } from "../native/crypto.ts";
import { verifyConsistency, verifyInclusion } from "../shared/merkle/verify.ts";
import { CoreLog, manyHashes } from "./core-log.ts";

const SIZES = [1e3, 1e4, 1e5, 1e6];

/** Microseconds of processor time a call. */
function timed<T>(work: readonly (() => T)[]): { results: T[]; each: number } {
  const before = process.cpuUsage();
  const results = work.map((one) => one());
  const { user, system } = process.cpuUsage(before);
  return { results, each: (user + system) / work.length };
}

/** A Markdown table. Throws where a proof does not verify. */
export function proofTable(count: number): string {
  const rows = SIZES.map((size) => {
    const log = new CoreLog();
    for (const hashes of manyHashes(size)) log.fill(hashes);
    const root = rootAt({ crypto: nativeCrypto, tree: log.tree }, size);
    const places = Array.from({ length: count }, (_, i) => Math.floor((i * size) / count));
    const made = timed(
      places.map(
        (at) => () => hashList(inclusionPaths(nativeCrypto, log.tree, [at + 1], size)[0] ?? new Uint8Array()),
      ),
    );
    const leaves = places.map((at) => log.tree.leafHashes(at, at + 1));
    const checked = timed(
      places.map(
        (at, i) => () =>
          verifyInclusion(nativeCrypto, at, size, leaves[i] ?? root, made.results[i] ?? [], root),
      ),
    );
    const olds = places.filter((at) => at > 0);
    const roots = olds.map((old) => rootAt({ crypto: nativeCrypto, tree: log.tree }, old));
    const linked = timed(
      olds.map((old) => () => hashList(consistencyPath(nativeCrypto, log.tree, old, size))),
    );
    const followed = timed(
      olds.map(
        (old, i) => () =>
          verifyConsistency(nativeCrypto, old, size, linked.results[i] ?? [], roots[i] ?? root, root),
      ),
    );
    if (![...checked.results, ...followed.results].every(({ ok }) => ok))
      throw new Error("a proof does not verify");
    const longest = (paths: readonly (readonly Uint8Array[])[]) =>
      Math.max(...paths.map((path) => path.length));
    const cells = [
      size.toLocaleString("en"),
      ...[longest(made.results), made.each.toFixed(0), checked.each.toFixed(0)],
      ...[longest(linked.results), linked.each.toFixed(0), followed.each.toFixed(0)],
    ];
    return `| ${cells.join(" | ")} |`;
  });
  return [
    "| leaves | inclusion: hashes | made in (µs) | checked in (µs) | consistency: hashes | made in (µs) | checked in (µs) |",
    "| --- | --- | --- | --- | --- | --- | --- |",
    ...rows,
  ].join("\n");
}
