/**
 * Has the service's log cosigned: each new head goes to every configured witness, from the log's alarm but never in its
 * way. A witness that is away, or refuses, is left alone for longer and longer; its state is the operator's to see.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { RunsealError } from "../../shared/errors.ts";
import { formatVkey } from "../../shared/note/vkey.ts";
import type { Env } from "../../workers/env.ts";
import { logEvent } from "../../workers/log-event.ts";
import type { WitnessState } from "./witness-storage.ts";
import { WitnessStorage } from "./witness-storage.ts";
import type { Witness, WitnessAnswer } from "./witnesses.ts";
import { askWitness, parseWitnesses } from "./witnesses.ts";

/** Milliseconds after which a submission counts as lost with the object that made it: two attempts of ten seconds. */
const LOST_AFTER_MS = 30_000;
/** Pause after the first failure in a row; it doubles with each further one, up to the longest. */
export const FIRST_BACKOFF_MS = 5000;
export const LONGEST_BACKOFF_MS = 600_000;

/** What is to be cosigned. */
export interface WitnessedHead {
  readonly size: number;
  readonly checkpoint: string;
  /** The consistency proof from a size to this one. */
  readonly proof: (from: number) => Uint8Array[];
}

/** A witness as the operator sees it. */
export interface WitnessView extends Omit<WitnessState, "checkpoint" | "cosignature"> {
  readonly name: string;
  readonly url: string;
}

/** A head of the service's log with the cosignatures on it. */
export interface CosignedHead {
  readonly size: number;
  readonly checkpoint: string;
}

/** Outcomes that say that the witness holds another history of this log than there is. */
const DISAGREES = new Set(["ahead", "forked", "inconsistent"]);

export class WitnessClient {
  readonly #storage: WitnessStorage;
  readonly #witnesses: readonly { readonly witness: Witness; readonly vkey: string }[];
  readonly #raise: (detail: string) => void;
  #misconfigured: string | null = null;
  #running: Promise<void> | null = null;

  /** @param raise takes an alarm: a witness disagrees */
  constructor(sql: SqlStorage, env: Env, raise: (detail: string) => void) {
    this.#storage = new WitnessStorage(sql);
    this.#raise = raise;
    let parsed: Witness[] = [];
    try {
      parsed = parseWitnesses(nativeCrypto, env.WITNESSES);
    } catch (error) {
      if (!(error instanceof RunsealError)) throw error;
      // A typo in a setting must not take the log away; the operator sees it.
      this.#misconfigured = error.message;
      logEvent("witnesses-misconfigured", {});
    }
    this.#witnesses = parsed.map((witness) => ({ witness, vkey: formatVkey(witness.key) }));
  }

  /** Why the setting can't be read; null where it can. */
  get misconfigured(): string | null {
    return this.#misconfigured;
  }

  /** When somebody is to be asked for a head of this size, in milliseconds; null for never. */
  dueAt(size: number): number | null {
    const due = this.#states()
      .filter(({ state }) => size > 0 && state.cosignedSize < size)
      .map(({ state }) => state.nextAtMs);
    return due.length === 0 ? null : Math.min(...due);
  }

  /**
   * Submits the head to each witness that is due. Returns at once, and never throws.
   *
   * @param done called when every one of them has answered or was given up
   * @returns when to ask again should `done` never be called, in milliseconds; null where nobody is asked
   */
  submit(head: WitnessedHead, done: () => Promise<void>): number | null {
    if (this.#running !== null) return null;
    const now = Date.now();
    const due = this.#states().filter(
      ({ state }) => head.size > 0 && state.cosignedSize < head.size && state.nextAtMs <= now,
    );
    if (due.length === 0) return null;
    // Should this object end meanwhile, the alarm asks again.
    const lostAt = now + LOST_AFTER_MS;
    for (const { state } of due) this.#storage.set({ ...state, nextAtMs: lostAt });
    this.#running = Promise.all(due.map(({ witness, vkey }) => this.#ask(witness, vkey, head)))
      .then(done)
      .catch(() => logEvent("witnesses-failed", {}))
      .finally(() => {
        this.#running = null;
      });
    return lostAt;
  }

  /** The checkpoint with the cosignatures that there are on this very head. */
  withCosignatures(checkpoint: string): string {
    const lines = this.#states().filter(({ state }) => state.checkpoint === checkpoint);
    return checkpoint + lines.map(({ state }) => state.cosignature).join("");
  }

  /** The largest head that a witness cosigned; null for none. */
  cosigned(): CosignedHead | null {
    let last: WitnessState | null = null;
    for (const { state } of this.#states()) {
      if (state.cosignedSize > (last?.cosignedSize ?? 0)) last = state;
    }
    return last === null
      ? null
      : { size: last.cosignedSize, checkpoint: this.withCosignatures(last.checkpoint) };
  }

  view(): WitnessView[] {
    return this.#states().map(({ witness, state }) => {
      const { checkpoint: _checkpoint, cosignature: _cosignature, ...rest } = state;
      return { name: witness.name, url: witness.url, ...rest };
    });
  }

  #states(): { readonly witness: Witness; readonly vkey: string; readonly state: WitnessState }[] {
    return this.#witnesses.map((one) => ({ ...one, state: this.#storage.get(one.vkey) }));
  }

  async #ask(witness: Witness, vkey: string, head: WitnessedHead): Promise<void> {
    const before = this.#storage.get(vkey);
    const submission = {
      crypto: nativeCrypto,
      fetch: (url: string, init: RequestInit) => fetch(url, init),
      ...head,
    };
    const answer = await askWitness(witness, submission, before.known);
    const now = Date.now();
    const state = nextState(before, answer, head, now);
    this.#storage.set(state);
    if (answer.outcome === "cosigned") return;
    logEvent("witness-gave-none", { witness: witness.key.name, outcome: answer.outcome, size: head.size });
    if (DISAGREES.has(answer.outcome)) {
      this.#raise(`the witness ${witness.key.name} holds another history of this log: ${answer.outcome}`);
    }
  }
}

/** The witness' row after an answer. */
export function nextState(
  before: WitnessState,
  answer: WitnessAnswer,
  head: { readonly size: number; readonly checkpoint: string },
  nowMs: number,
): WitnessState {
  const asked = { ...before, known: answer.size, outcome: answer.outcome, askedAtMs: nowMs };
  if (answer.outcome === "cosigned" && answer.cosignature !== null) {
    return {
      ...asked,
      nextAtMs: nowMs,
      failures: 0,
      cosignedSize: head.size,
      cosignedAtMs: nowMs,
      checkpoint: head.checkpoint,
      cosignature: answer.cosignature,
    };
  }
  const backoff = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(before.failures, 20));
  return { ...asked, failures: before.failures + 1, nextAtMs: nowMs + Math.max(backoff, answer.pauseMs) };
}
