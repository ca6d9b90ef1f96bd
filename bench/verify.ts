/**
 * Offline verification of an exported log against plain native SHA-256 over the same leaves. Both are one thread that
 * waits for nothing, so that they are timed by the processor's time: what else the machine does counts for neither.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { nativeCrypto } from "../native/crypto.ts";
import { RunsealClient } from "../sdk/client.ts";
import { BundleVerifier } from "../shared/verify/bundle.ts";
import { toolCallEntries } from "./entries.ts";
import type { BenchRuntime } from "./runtime.ts";
import type { Comparison } from "./table.ts";
import { compare } from "./table.ts";

async function exported(
  runtime: BenchRuntime,
  count: number,
): Promise<{ registryId: string; withContent: string[]; leavesOnly: string[] }> {
  const operator = new RunsealClient({ url: runtime.service, apiKey: runtime.operatorToken });
  const tenant = await operator.createTenant("bench-verify");
  const client = new RunsealClient({ url: runtime.service, apiKey: tenant.api_key });
  for (let i = 0; i < count; i += 1000) await client.appendTexts("log", toolCallEntries(`v${i}`, 1000));
  const lines = async (content: boolean): Promise<string[]> =>
    (await (await client.export("log", { content })).text()).trimEnd().split("\n");
  return { registryId: tenant.registry_id, withContent: await lines(true), leavesOnly: await lines(false) };
}

function verify(lines: readonly string[], registryId: string, count: number): number {
  const verifier = new BundleVerifier(nativeCrypto, { registryId, verifiedBy: "bench" });
  const started = process.cpuUsage();
  for (const line of lines) verifier.line(line);
  const report = verifier.finish();
  const seconds = secondsSince(started);
  if (report.verdict !== "intact") throw new Error(`the log is ${report.verdict}: ${report.break?.detail}`);
  return count / seconds;
}

function hash(leaves: readonly Buffer[]): number {
  const started = process.cpuUsage();
  for (const leaf of leaves) createHash("sha256").update(leaf).digest();
  return leaves.length / secondsSince(started);
}

/** Processor time of this process. */
function secondsSince(started: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(started);
  return (user + system) / 1_000_000;
}

export async function benchVerify(
  runtime: BenchRuntime,
  rounds: number,
  count: number,
): Promise<Comparison[]> {
  const { registryId, withContent, leavesOnly } = await exported(runtime, count);
  const leaves = leavesOnly.flatMap((line) => {
    const { t, leaf } = JSON.parse(line) as { t?: string; leaf?: string };
    return t === "leaf" && leaf !== undefined ? [Buffer.from(leaf, "base64")] : [];
  });
  hash(leaves);
  verify(leavesOnly, registryId, count);
  const floor = async () => hash(leaves);
  return [
    await compare("offline verification, leaves and proofs (entries/s)", rounds, {
      ours: async () => verify(leavesOnly, registryId, count),
      floor,
    }),
    await compare("offline verification, values too (entries/s)", rounds, {
      ours: async () => verify(withContent, registryId, count),
      floor,
    }),
  ];
}
