/**
 * Keeps a log's mirror in R2: one comparison when the object starts, and one pass at a time after commits, with at
 * most one put a second of the checkpoint (R2 takes one write a second per key). A mirror that disagrees stops the log.
 *
 * @module
 */
import { TILE_WIDTH } from "../../shared/merkle/tiles.ts";
import { logEvent } from "../../workers/log-event.ts";
import type { MirrorContext, NoteCheck } from "./mirror.ts";
import { archiveTiles, checkMirror, putCheckpoint } from "./mirror.ts";

/** An object, so that a test can shorten it. */
export const MIRROR_PACE = {
  /** Milliseconds between two puts of the checkpoint: R2 takes one write a second per key. */
  minPutInterval: 1000,
};

/** How much of a log is in R2. */
export interface MirrorProgress {
  /** Leaves covered by full tiles and bundles. */
  readonly archivedSeq: number;
  /** Size of the head that is mirrored. */
  readonly mirroredSize: number;
}

export interface MirrorKeeperContext extends MirrorContext {
  readonly head: () => { readonly size: number; readonly checkpoint: string } | null;
  readonly progress: () => MirrorProgress;
  readonly progressed: (progress: Partial<MirrorProgress>) => void;
  readonly stopped: () => boolean;
  /** Raises the log's `stopped` alarm, in storage; with the mirrored checkpoint, where it is what contradicts. */
  readonly stop: (detail: string, kind: "ahead" | "fork" | "object", checkpoint: string | null) => void;
  /** Up to which leaf the log has them in R2 and D1 alone. */
  readonly prunedSeq?: () => number;
  /**
   * Takes back what the mirrored checkpoint covers and the log lacks, when it starts; null once it has it all, else why
   * it can't. A log without it stops. Throws where that is to be tried again.
   */
  readonly refill?: (checkpoint: string) => Promise<string | null>;
  /**
   * The signed head that D1 holds, compared with a log of the size that is asked for; null where there is nothing to be
   * learned from it. Throws where that is to be tried again.
   */
  readonly indexed?: () => Promise<(size: number) => Promise<NoteCheck | null>>;
}

/** Who holds a head that contradicts the log, in the stop's detail. */
const MIRROR = "the mirror";
const KEPT = "D1, or the log's own note of a refill,";

export class Mirror {
  readonly #context: MirrorKeeperContext;
  #compared = false;
  #comparing: Promise<void> | null = null;
  #running: Promise<void> | null = null;
  #lastPut = 0;

  constructor(context: MirrorKeeperContext) {
    this.#context = context;
  }

  /**
   * Compares the log with its mirrored head, once a start: a log that was rewound must not be extended. Raises the
   * `stopped` alarm where they disagree; throws what R2 throws.
   */
  async compareOnce(): Promise<void> {
    if (this.#compared) return;
    this.#comparing ??= this.#compare().finally(() => {
      this.#comparing = null;
    });
    await this.#comparing;
  }

  /** Archives full tiles and mirrors the head as it is when its turn comes. Throws what R2 throws. */
  async run(): Promise<void> {
    this.#running ??= this.#runOnce().finally(() => {
      this.#running = null;
    });
    await this.#running;
  }

  /**
   * The same, and again after each pause while other work goes on: commits that come meanwhile do not wait for its end.
   *
   * @param work never rejects; null where there is none
   */
  async runBeside(work: Promise<unknown> | null, pauseMs: number): Promise<void> {
    let isOver = work === null;
    const ended = work?.then(() => {
      isOver = true;
    });
    await this.run();
    while (!isOver) {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const pause = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, pauseMs);
      });
      await Promise.race([ended, pause]);
      clearTimeout(timer);
      if (!isOver) await this.run();
    }
  }

  async #compare(): Promise<void> {
    const { head, progress, progressed, refill, indexed } = this.#context;
    const size = (): number => head()?.size ?? 0;
    // Both are asked at once.
    const [found, ofIndex] = await Promise.all([checkMirror(this.#context, size()), indexed?.()]);
    let check = found;
    let why: string | null = null;
    if (check.kind === "ahead" && refill !== undefined) {
      why = await refill(check.checkpoint);
      if (why === null) check = await checkMirror(this.#context, size());
    }
    const agrees = check.kind === "none" || check.kind === "consistent";
    let kept = agrees ? ((await ofIndex?.(size())) ?? null) : null;
    if (kept?.kind === "ahead" && refill !== undefined) {
      why = await refill(kept.checkpoint);
      if (why === null) kept = (await ofIndex?.(size())) ?? null;
    }
    if (check.kind === "ahead" || check.kind === "fork") this.#stop(check.kind, check, why);
    else if (kept?.kind === "ahead" || kept?.kind === "fork") this.#stop(kept.kind, kept, why, KEPT);
    else {
      // What R2 holds is what counts: a put's answer may have been lost, or an older object restored.
      const mirroredSize = check.kind === "none" ? 0 : this.#covered(check);
      if (mirroredSize < progress().mirroredSize)
        progressed({ mirroredSize, archivedSeq: this.#archivedUnder(mirroredSize) });
      else if (mirroredSize !== progress().mirroredSize) progressed({ mirroredSize });
    }
    this.#compared = true;
  }

  async #runOnce(): Promise<void> {
    const { head, progress, progressed, stopped } = this.#context;
    if (stopped() || progress().mirroredSize >= (head()?.size ?? 0)) return;
    // A clock that was put back must not hold the mirror for longer than the pace.
    const { minPutInterval } = MIRROR_PACE;
    const wait = Math.min(minPutInterval, this.#lastPut + minPutInterval - Date.now());
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    const current = head();
    if (current === null) return;
    const archived = await archiveTiles(this.#context, progress().archivedSeq, current.size, (archivedSeq) =>
      progressed({ archivedSeq }),
    );
    if (!archived) {
      this.#stop("object", null);
      return;
    }
    const check = await checkMirror(this.#context, current.size);
    if (check.kind === "ahead" || check.kind === "fork") {
      this.#stop(check.kind, check);
      return;
    }
    this.#lastPut = Date.now();
    if (await putCheckpoint(this.#context, check, current.checkpoint))
      progressed({ mirroredSize: this.#covered(current) });
  }

  /** What a mirrored head covers: one of the log's size that was signed anew since is still to be mirrored. */
  #covered({ size, checkpoint }: { readonly size: number; readonly checkpoint: string }): number {
    const now = this.#context.head();
    const isOlder = now !== null && now.size === size && now.checkpoint !== checkpoint;
    return isOlder ? Math.max(0, size - 1) : size;
  }

  /** R2 went backwards: what lies behind its head may be gone with it, and is put again, if it is still here. */
  #archivedUnder(mirroredSize: number): number {
    const { progress, prunedSeq } = this.#context;
    const here = TILE_WIDTH * Math.ceil((prunedSeq?.() ?? 0) / TILE_WIDTH);
    const full = TILE_WIDTH * Math.floor(mirroredSize / TILE_WIDTH);
    return Math.min(progress().archivedSeq, Math.max(full, here));
  }

  #stop(
    kind: "ahead" | "fork" | "object",
    mirrored: { readonly size: number; readonly checkpoint: string } | null,
    why: string | null = null,
    holder: typeof MIRROR | typeof KEPT = MIRROR,
  ): void {
    const size = mirrored?.size ?? 0;
    const lost = why === null ? "" : `, and it could not be filled again: ${why}`;
    const detail = {
      ahead: `${holder} holds a head of ${size} entries, more than the log has: its storage was rewound${lost}`,
      fork: `${holder} holds a head of ${size} entries that is not a head of this log`,
      object: "the mirror holds another object where a tile or bundle of this log belongs",
    }[kind];
    this.#context.stop(detail, kind, mirrored?.checkpoint ?? null);
    logEvent("log-stopped", { origin: this.#context.origin, kind });
  }
}
