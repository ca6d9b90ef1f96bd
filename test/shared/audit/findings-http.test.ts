import { describe, expect, it } from "vitest";
import type { EntryView } from "../../../shared/entry/view.ts";
import { found, H, listOf, OTHER_H } from "./findings-support.ts";
import { type Parts, ref, TestLog, without } from "./support.ts";

describe("HTTP exchanges", () => {
  const request = (sequence: number): Parts => ({
    action: {
      sequence,
      method: "POST",
      host: "api.example.com",
      port: 443,
      path_hash: H,
      headers_hash: H,
      body_hash: H,
      body_len: 12,
      redirect_hop: 0,
    },
  });
  const response = (sequence: number, request_entry?: { seq: number; hash: string }): Parts => ({
    action: { sequence, ...(request_entry === undefined ? {} : { request_entry }) },
    outcome: { status: "success", http_status: 200, body_len: 3, complete: true },
  });

  it("are fine in pairs, also where they overlap and the response names its request", () => {
    const log = new TestLog();
    const first = log.add("http.request", request(1));
    log.add("http.request", request(2));
    log.add("http.response", response(2));
    log.add("http.response", response(1, ref(first)));
    expect(found(log.entries)).toEqual([]);
  });

  it("lack a response", () => {
    const log = new TestLog();
    log.add("http.request", request(1));
    log.add("http.request", request(2));
    log.add("http.response", response(2));
    expect(found(log.entries)).toEqual([["http_request_without_response", 1]]);
  });

  it("lack a request, and with it a number", () => {
    const log = new TestLog();
    log.add("http.request", request(1));
    log.add("http.response", response(1));
    log.add("http.response", response(2));
    log.add("http.request", request(3));
    log.add("http.response", response(3));
    expect(found(log.entries)).toEqual([
      ["http_response_without_request", 3],
      ["http_sequence_gap", 1, 4],
    ]);
  });

  it("come in the wrong order", () => {
    const log = new TestLog();
    log.add("http.response", response(1));
    log.add("http.request", request(1));
    expect(found(log.entries)).toEqual([["http_response_without_request", 1]]);
  });

  it("have two responses", () => {
    const log = new TestLog();
    log.add("http.request", request(1));
    log.add("http.response", response(1));
    log.add("http.response", response(1));
    expect(found(log.entries)).toEqual([["http_response_repeated", 3]]);
  });

  it("have two requests of one number", () => {
    const log = new TestLog();
    log.add("http.request", request(1));
    log.add("http.response", response(1));
    log.add("http.request", request(1));
    expect(found(log.entries)).toEqual([["http_sequence_repeated", 3]]);
  });

  it.each([
    ["another entry", (first: EntryView) => ({ seq: first.seq + 1, hash: first.hash })],
    ["another hash", (first: EntryView) => ({ seq: first.seq, hash: OTHER_H })],
  ])("name %s as the request", (_, named) => {
    const log = new TestLog();
    const first = log.add("http.request", request(1));
    log.add("http.response", response(1, named(first)));
    expect(found(log.entries)).toEqual([["http_request_entry_mismatch", 1, 2]]);
  });

  it("have gaps at the start and between, each with its numbers and the entries beside it", () => {
    const log = new TestLog();
    for (const sequence of [3, 4, 8]) {
      log.add("http.request", request(sequence));
      log.add("http.response", response(sequence));
    }
    const gaps = listOf(log.entries).findings;
    expect(gaps.map(({ missing }) => missing)).toEqual([
      { from: 1, to: 2 },
      { from: 5, to: 7 },
    ]);
    expect(gaps.map(({ entries }) => entries.map(({ seq }) => seq))).toEqual([[1], [3, 5]]);
  });

  it("may be committed out of the order of their numbers", () => {
    const log = new TestLog();
    for (const sequence of [2, 1, 4, 3]) log.add("http.request", request(sequence));
    for (const sequence of [1, 2, 3, 4]) log.add("http.response", response(sequence));
    expect(found(log.entries)).toEqual([]);
  });

  it("of another run are not this run's", () => {
    const log = new TestLog();
    log.add("http.request", { ...request(7), run: "r2" });
    expect(found(log.entries)).toEqual([]);
  });

  it("whose number is erased are not checked, and that is said", () => {
    const log = new TestLog();
    const only = log.add("http.request", request(1));
    const list = listOf([without(only, "sequence")]);
    expect(list.findings).toEqual([]);
    expect(list.notCheckedList).toEqual([{ entry: ref(only), what: "action.sequence", why: "erased" }]);
  });
});
