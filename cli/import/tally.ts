/**
 * Counts while a run is written: for the view of its policy evaluations, for `--dry-run`, and for its notes.
 *
 * @module
 */
import type { KnownCounts } from "./evaluate.ts";
import type { ImportCounts } from "./types.ts";

/** Tokens of one exchange. */
export interface Usage {
  readonly input: number | undefined;
  readonly output: number | undefined;
  readonly cached: number | undefined;
}

export class Tally {
  messages = 0;
  exchanges = 0;
  calls = 0;
  results = 0;
  orphans = 0;
  pairedByOrder = 0;
  #failures = 0;
  #emptyIds = 0;
  readonly #ids = new Map<string, number>();
  /** Sums of what the source counted; undefined as long as it has counted nothing. */
  #tokens: Usage = { input: undefined, output: undefined, cached: undefined };

  exchange(usage: Usage | undefined): void {
    this.exchanges += 1;
    this.#tokens = {
      input: sum(this.#tokens.input, usage?.input),
      output: sum(this.#tokens.output, usage?.output),
      cached: sum(this.#tokens.cached, usage?.cached),
    };
  }

  call(providerId: string | undefined): void {
    this.calls += 1;
    if (providerId === undefined || providerId === "") this.#emptyIds += 1;
    else this.#ids.set(providerId, (this.#ids.get(providerId) ?? 0) + 1);
  }

  result(status: "success" | "failure" | "unknown"): void {
    this.results += 1;
    if (status === "failure") this.#failures += 1;
  }

  /** What a policy is shown: each call is a step, and those before this one have begun. */
  known(): KnownCounts {
    return {
      steps: this.calls,
      modelCalls: this.exchanges,
      inputTokens: this.#tokens.input,
      outputTokens: this.#tokens.output,
      cachedTokens: this.#tokens.cached,
    };
  }

  counts(unanswered: number): ImportCounts {
    return {
      messages: this.messages,
      exchanges: this.exchanges,
      calls: this.calls,
      results: this.results,
      failures: this.#failures,
      unanswered,
      emptyIds: this.#emptyIds,
      repeatedIds: [...this.#ids.values()].filter((count) => count > 1).length,
    };
  }

  notes(unanswered: number): string[] {
    const { emptyIds, repeatedIds } = this.counts(unanswered);
    const notes: string[] = [];
    const say = (count: number, one: string, many: string): void => {
      if (count > 0) notes.push(`${count} ${count === 1 ? one : many}`);
    };
    say(emptyIds, "call has no provider id", "calls have no provider id");
    say(
      repeatedIds,
      "provider id is used by more than one call",
      "provider ids are used by more than one call",
    );
    say(
      this.pairedByOrder,
      "result was paired by order, not by id",
      "results were paired by order, not by id",
    );
    say(
      unanswered,
      "call has no result: it has no completion",
      "calls have no result: they have no completion",
    );
    say(
      this.orphans,
      "result answers no call: its completion stands alone",
      "results answer no call: their completions stand alone",
    );
    return notes;
  }
}

function sum(total: number | undefined, more: number | undefined): number | undefined {
  return more === undefined ? total : (total ?? 0) + more;
}
