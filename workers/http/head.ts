/**
 * A head as the API answers it.
 *
 * @module
 */
import type { z } from "zod";
import type { HeadView } from "../../durable-objects/principal-log/types.ts";
import type { Head } from "../../shared/api/schemas.ts";

/** Members that the checkpoint's signature does not cover: it signs origin, size and root. */
export const ASSERTED = ["hash", "epoch", "key", "mirrored_size"] as const;

export function headOut(head: HeadView): z.infer<typeof Head> {
  return {
    seq: head.size,
    hash: head.hash,
    size: head.size,
    root: head.root,
    checkpoint: head.checkpoint,
    epoch: head.epoch,
    key: head.key,
    mirrored_size: head.mirroredSize,
    asserted: [...ASSERTED],
  };
}
