/**
 * Inclusion proofs for entries just stored or read, all under one signed head.
 *
 * @module
 */

import type { HeadView } from "../../durable-objects/principal-log/types.ts";
import { toHex } from "../../shared/bytes.ts";
import { formatTlogProof } from "../../shared/note/tlog-proof.ts";
import { Problem } from "../http/problem.ts";
import type { OpenLog } from "./open-log.ts";
import { refusal } from "./open-log.ts";

export interface EntryProof {
  /** c2sp.org/tlog-proof@v1. */
  readonly text: string;
  readonly checkpoint: string;
  /** Hashes of the RFC 6962 audit path, hex. */
  readonly path: readonly string[];
}

/** Proofs by sequence number, under the given head, or the log's own where it is null. Throws a 503 problem. */
export async function proofsFor(
  log: OpenLog,
  seqs: readonly number[],
  under: HeadView | null = null,
): Promise<ReadonlyMap<number, EntryProof>> {
  const outcome = await log.stub.inclusion(log.identity, log.epoch, seqs, under?.size ?? null);
  if (!outcome.ok) throw refusal(outcome);
  const { checkpoint } = under ?? outcome.head;
  return new Map(
    seqs.map((seq, i) => {
      const joined = outcome.paths[i];
      if (joined === undefined) throw new Problem("internal");
      const hashes: Uint8Array[] = [];
      for (let at = 0; at < joined.length; at += 32) hashes.push(joined.subarray(at, at + 32));
      return [
        seq,
        {
          text: formatTlogProof({ index: seq - 1, hashes, checkpoint }),
          checkpoint,
          path: hashes.map(toHex),
        },
      ] as const;
    }),
  );
}
