/**
 * HTTP exchanges of a run: each request has its response, and the requests' sequence numbers have no gap. A number is
 * taken by every request, denied ones too.
 *
 * @module
 */
import type { EntryView } from "../entry/view.ts";
import { BoundedMap } from "./bounded-map.ts";
import { missingOf, objectAt, wholeAt } from "./fields.ts";
import { type EntryRef, type FindingList, refOf } from "./finding.ts";
import { NumberRanges } from "./number-ranges.ts";

/** Requests that may be open at once. */
const MAX_OPEN = 16_384;
/** Ranges of numbers: a run whose numbers come in order has one. */
const MAX_RANGES = 16_384;

export class HttpCheck {
  readonly #list: FindingList;
  readonly #open: BoundedMap<number, EntryRef>;
  readonly #requested = new NumberRanges<EntryRef>();
  readonly #answered = new NumberRanges<null>();

  constructor(list: FindingList) {
    this.#list = list;
    this.#open = new BoundedMap(MAX_OPEN, () =>
      list.limit(`HTTP requests beyond ${MAX_OPEN} that wait for their responses`),
    );
  }

  add(entry: EntryView): void {
    if (entry.kind !== "http.request" && entry.kind !== "http.response") return;
    const sequence = wholeAt(entry.action, "sequence");
    const missing = missingOf(entry.action, "sequence");
    if (missing !== null) this.#list.notChecked(refOf(entry), "action.sequence", missing);
    if (sequence === undefined) return;
    if (this.#requested.ranges.length > MAX_RANGES || this.#answered.ranges.length > MAX_RANGES)
      this.#list.limit(`HTTP sequence numbers out of order, beyond ${MAX_RANGES} ranges`);
    else if (entry.kind === "http.request") this.#request(entry, sequence);
    else this.#response(entry, sequence);
  }

  #request(entry: EntryView, sequence: number): void {
    const request = refOf(entry);
    if (!this.#requested.add(sequence, request)) {
      this.#list.add("http_sequence_repeated", [request]);
      return;
    }
    // Its response may have come first: that is a finding already, and nothing is open then.
    if (!this.#answered.has(sequence)) this.#open.set(sequence, request);
  }

  #response(entry: EntryView, sequence: number): void {
    const request = this.#open.get(sequence);
    const response = refOf(entry);
    if (request === undefined) {
      // One that was asked for and is not open any more was answered, or forgotten for want of room.
      if (!this.#answered.add(sequence, null)) this.#list.add("http_response_repeated", [response]);
      else if (!this.#requested.has(sequence)) this.#list.add("http_response_without_request", [response]);
      return;
    }
    this.#open.delete(sequence);
    this.#answered.add(sequence, null);
    const missing = missingOf(entry.action, "request_entry");
    if (missing !== null) this.#list.notChecked(refOf(entry), "action.request_entry", missing);
    if (!namesEntry(entry, request)) this.#list.add("http_request_entry_mismatch", [request, response]);
  }

  finish(): void {
    for (const request of this.#open.values()) this.#list.add("http_request_without_response", [request]);
    let last: { readonly to: number; readonly high: EntryRef } | undefined;
    for (const range of this.#requested.ranges) {
      const from = last === undefined ? 1 : last.to + 1;
      const sides = last === undefined ? [range.low] : [last.high, range.low];
      if (range.from > from)
        this.#list.add("http_sequence_gap", inOrder(sides), { missing: { from, to: range.from - 1 } });
      last = range;
    }
  }
}

/** Whether `request_entry`, where it is there, is this entry. */
export function namesEntry(entry: EntryView, request: EntryRef): boolean {
  const named = objectAt(entry.action, "request_entry");
  return (
    named === undefined || (named.get("seq") === BigInt(request.seq) && named.get("hash") === request.hash)
  );
}

function inOrder(entries: readonly EntryRef[]): EntryRef[] {
  return [...entries].sort((a, b) => a.seq - b.seq);
}
