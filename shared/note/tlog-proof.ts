// PROVISIONAL stand-in: overwrite it.
import { toBase64 } from "../bytes.ts";
export function formatTlogProof(p: {
  index: number;
  hashes: readonly Uint8Array[];
  checkpoint: string;
}): string {
  return `c2sp.org/tlog-proof@v1\nindex ${p.index}\n${p.hashes.map((h) => `${toBase64(h)}\n`).join("")}\n${p.checkpoint}`;
}
