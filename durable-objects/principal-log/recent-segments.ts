/**
 * The newest segments in memory, so that what was just written is not read back. Always a tail of the log without a gap.
 *
 * @module
 */
import type { Segment } from "./storage.ts";

/** Bytes of the newest segments that are kept in memory: what the flush and the mirror read next. */
const MAX_RECENT_BYTES = 8 * 1024 * 1024;

export class RecentSegments {
  #segments: Segment[] = [];
  #bytes = 0;

  add(segment: Segment): void {
    this.#segments.push(segment);
    this.#bytes += segment.leaves.length + segment.rows.length;
    while (this.#bytes > MAX_RECENT_BYTES) {
      const oldest = this.#segments.shift();
      if (oldest === undefined) return;
      this.#bytes -= oldest.leaves.length + oldest.rows.length;
    }
  }

  /** Takes over the new rows of a segment, where it is here. */
  rewrite(firstSeq: number, rows: string): void {
    const at = this.#segments.findIndex((segment) => segment.firstSeq === firstSeq);
    const old = this.#segments[at];
    if (old === undefined) return;
    this.#segments[at] = { ...old, rows };
    this.#bytes += rows.length - old.rows.length;
  }

  /** Drops the segments that end with this entry or before. */
  dropUpTo(seq: number): void {
    for (let [oldest] = this.#segments; oldest !== undefined; [oldest] = this.#segments) {
      if (oldest.firstSeq + oldest.count - 1 > seq) return;
      this.#segments.shift();
      this.#bytes -= oldest.leaves.length + oldest.rows.length;
    }
  }

  clear(): void {
    this.#segments = [];
    this.#bytes = 0;
  }

  /** Whether every segment from this entry on is here. */
  covers(seq: number): boolean {
    const [first] = this.#segments;
    return first !== undefined && first.firstSeq <= seq;
  }

  /** A copy, for the caller may wait between two of them. */
  from(seq: number): Segment[] {
    return this.#segments.filter(({ firstSeq, count }) => firstSeq + count > seq);
  }
}
