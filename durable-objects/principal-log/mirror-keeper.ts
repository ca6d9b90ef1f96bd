/**
 * Keeps a log's mirror in R2: one comparison when the object starts, and one pass at a time after commits, with at
 * most one put a second of the checkpoint (R2 takes one write a second per key). A mirror that disagrees stops the log.
 *
 * @module
 */
import { logEvent } from "../../workers/log-event.ts";
import type { MirrorContext } from "./mirror.ts";
import { archiveTiles, checkMirror, putCheckpoint } from "./mirror.ts";
import type { Progress, StoredHead } from "./storage.ts";

const MIN_PUT_INTERVAL_MS = 1000;

export interface MirrorKeeperContext extends MirrorContext {
  readonly head: () => StoredHead | null;
  readonly progress: () => Progress;
  readonly progressed: (progress: Partial<Progress>) => void;
}

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

  async #compare(): Promise<void> {
    const size = this.#context.head()?.size ?? 0;
    const check = await checkMirror(this.#context, size);
    if (check.kind === "ahead" || check.kind === "fork") this.#stop(check.kind, check.size);
    this.#compared = true;
  }

  async #runOnce(): Promise<void> {
    const { head, progress, progressed, storage } = this.#context;
    if (storage.standingAlarm("stopped") !== null) return;
    const wait = this.#lastPut + MIN_PUT_INTERVAL_MS - Date.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    const current = head();
    if (current === null || current.size === 0 || progress().mirroredSize >= current.size) return;
    const archived = await archiveTiles(this.#context, progress().archivedSeq, current.size);
    if ("differs" in archived) {
      this.#stop("object", current.size);
      return;
    }
    if (archived.archivedSeq !== progress().archivedSeq) progressed({ archivedSeq: archived.archivedSeq });
    const check = await checkMirror(this.#context, current.size);
    if (check.kind === "ahead" || check.kind === "fork") {
      this.#stop(check.kind, check.size);
      return;
    }
    this.#lastPut = Date.now();
    if (await putCheckpoint(this.#context, check, current.checkpoint))
      progressed({ mirroredSize: current.size });
  }

  #stop(kind: "ahead" | "fork" | "object", size: number): void {
    const detail = {
      ahead: `the mirror holds a head of ${size} entries, more than the log has: its storage was rewound`,
      fork: `the mirror holds a head of ${size} entries that is not a head of this log`,
      object: "the mirror holds another object where a tile or bundle of this log belongs",
    }[kind];
    this.#context.storage.raiseAlarm("stopped", detail);
    logEvent("log-stopped", { origin: this.#context.origin, kind });
  }
}
