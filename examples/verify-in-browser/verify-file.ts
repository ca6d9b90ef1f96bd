/**
 * Verifies a bundle that is at hand as a File or Blob, in bounded memory, without blocking the page.
 *
 * @module
 */
import type { VerifyReport } from "../../shared/api/schemas.ts";
import { LineSplitter } from "../../shared/bundle/lines.ts";
import { pureCrypto } from "../../shared/crypto/pure.ts";
import type { BundleOptions } from "../../shared/verify/bundle.ts";
import { BundleVerifier } from "../../shared/verify/bundle.ts";

/** What was kept elsewhere. */
export type Kept = Pick<BundleOptions, "registryId" | "checkpoint" | "keptHead">;

/** Milliseconds of work after which the page gets its turn. */
const TURN = 40;

/**
 * The report on the file.
 *
 * @param onProgress called with the bytes read and the entries checked so far
 * @throws the signal's reason where it is aborted; what the browser throws where the file can't be read
 */
export async function verifyFile(
  file: Blob,
  kept: Kept,
  onProgress: (bytes: number, entries: number) => void = () => {},
  signal?: AbortSignal,
): Promise<VerifyReport> {
  let entries = 0;
  const verifier = new BundleVerifier(pureCrypto, {
    ...kept,
    verifiedBy: "this page, offline",
    onProgress: (checked) => {
      entries = checked;
    },
  });
  const splitter = new LineSplitter();
  const reader: ReadableStreamDefaultReader<Uint8Array> = file.stream().getReader();
  let bytes = 0;
  let turn = performance.now();
  const pause = async () => {
    onProgress(bytes, entries);
    await new Promise((resolve) => setTimeout(resolve, 0));
    signal?.throwIfAborted();
    turn = performance.now();
  };
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      for (const line of splitter.push(value)) {
        verifier.line(line);
        if (performance.now() - turn > TURN) await pause();
      }
      bytes += value.length;
    }
  } catch (error) {
    await reader.cancel().catch(() => {});
    throw error;
  }
  verifier.line(splitter.end());
  await pause();
  return verifier.finish();
}
