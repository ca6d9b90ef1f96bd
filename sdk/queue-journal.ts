/**
 * What a queue leaves behind so that its next start can tell whether this one ended cleanly: a small text, not the
 * entries. If it is still there, entries may have been lost with the process, and each principal's log gets a
 * `host.gap`.
 *
 * @module
 */
import { uuidv7 } from "../shared/ids.ts";

/** Where the text is kept. All three may throw. */
export interface QueueJournal {
  /** Null where there is none. */
  read(): Promise<string | null>;
  /** Replaces it; durable once this resolves. */
  write(text: string): Promise<void>;
  clear(): Promise<void>;
}

/** A gap that is to be declared. */
export interface Gap {
  readonly principal: string;
  readonly id: string;
  readonly epoch: string;
  /** RFC 3339; null where it is not known. */
  readonly openedAt: string | null;
  readonly reason: "unclean_shutdown" | "lane_marker_unreadable" | "lane_marker_unavailable";
}

interface Marker {
  readonly v: 1;
  /** This run of the queue. */
  readonly epoch: string;
  readonly opened_at: string;
  /** Principals that entries were queued for. */
  readonly principals: readonly string[];
  /** Gaps that are not stored yet. */
  readonly gaps: readonly Gap[];
}

export class QueueMarker {
  readonly #journal: QueueJournal;
  readonly #epoch: string;
  readonly #openedAt: string;
  readonly #principals: Set<string>;
  #gaps: Gap[];
  /** Why every principal has a gap: which ones the run before had is not known. */
  readonly #unknown: Exclude<Gap["reason"], "unclean_shutdown"> | null;
  #writing: Promise<void> = Promise.resolve();

  private constructor(
    journal: QueueJournal,
    nowMs: number,
    principals: Iterable<string>,
    gaps: Gap[],
    unknown: Exclude<Gap["reason"], "unclean_shutdown"> | null,
  ) {
    this.#journal = journal;
    this.#epoch = newId(nowMs);
    this.#openedAt = new Date(nowMs).toISOString();
    this.#principals = new Set(principals);
    this.#gaps = gaps;
    this.#unknown = unknown;
  }

  /**
   * Reads what the run before left, and leaves this one's in its place. Throws what the journal throws at writing:
   * without it a gap could not be told.
   */
  static async open(
    journal: QueueJournal,
    nowMs: number,
    principals: readonly string[],
  ): Promise<QueueMarker> {
    let unknown: Exclude<Gap["reason"], "unclean_shutdown"> | null = null;
    let gaps: Gap[] = [];
    try {
      const text = await journal.read();
      const before = text === null || text === "" ? null : parseMarker(text);
      if (before === "unreadable") unknown = "lane_marker_unreadable";
      else if (before !== null) {
        const fresh = before.principals.map(
          (principal): Gap => ({
            principal,
            id: newId(nowMs),
            epoch: before.epoch,
            openedAt: before.opened_at,
            reason: "unclean_shutdown",
          }),
        );
        gaps = [...before.gaps, ...fresh];
      }
    } catch {
      unknown = "lane_marker_unavailable";
    }
    const marker = new QueueMarker(journal, nowMs, principals, gaps, unknown);
    if (unknown !== null) for (const principal of principals) marker.#addUnknown(principal, nowMs);
    await marker.#write();
    return marker;
  }

  /** Gaps that are not stored yet. */
  get gaps(): readonly Gap[] {
    return this.#gaps;
  }

  /** Notes that entries are queued for the principal; answers the gap that it has all the same. */
  use(principal: string, nowMs: number): Gap | null {
    if (this.#principals.has(principal)) return null;
    this.#principals.add(principal);
    const gap = this.#unknown === null ? null : this.#addUnknown(principal, nowMs);
    void this.#write().catch(() => {});
    return gap;
  }

  /** Resolves once what is noted is kept; what failed before is tried again. Throws what the journal throws. */
  async kept(): Promise<void> {
    await this.#writing.catch(() => this.#write());
  }

  /** A gap is stored. */
  async declared(id: string): Promise<void> {
    this.#gaps = this.#gaps.filter((gap) => gap.id !== id);
    await this.#write();
  }

  /** The queue ended with nothing left in it. */
  async close(): Promise<void> {
    await this.#writing.catch(() => {});
    await this.#journal.clear();
  }

  #addUnknown(principal: string, nowMs: number): Gap {
    const reason = this.#unknown ?? "lane_marker_unavailable";
    const gap: Gap = { principal, id: newId(nowMs), epoch: "unknown", openedAt: null, reason };
    this.#gaps.push(gap);
    return gap;
  }

  #write(): Promise<void> {
    // One at a time, each with all that was noted before it; one that failed does not stop the next.
    this.#writing = this.#writing
      .catch(() => {})
      .then(() => this.#journal.write(JSON.stringify(this.#marker())));
    return this.#writing;
  }

  #marker(): Marker {
    return {
      v: 1,
      epoch: this.#epoch,
      opened_at: this.#openedAt,
      principals: [...this.#principals],
      gaps: this.#gaps,
    };
  }
}

function newId(nowMs: number): string {
  return uuidv7(nowMs, crypto.getRandomValues(new Uint8Array(16)));
}

function parseMarker(text: string): Marker | "unreadable" {
  try {
    const value = JSON.parse(text) as Partial<Marker>;
    const strings =
      Array.isArray(value.principals) && value.principals.every((one) => typeof one === "string");
    if (value.v === 1 && typeof value.epoch === "string" && strings && Array.isArray(value.gaps))
      return value as Marker;
  } catch {
    // Cut short, or somebody else's.
  }
  return "unreadable";
}
