/**
 * The tool calls of a run by their id: how often each was started and completed, and what the pairs come to.
 *
 * @module
 */
import { compareUtf8 } from "../json/order.ts";
import type { CallRef, LedgerFailure } from "./langbot-report.ts";

/** One end of a call. The name is null where it was erased or withheld: nothing is concluded from it. */
interface CallEnd {
  readonly sequence: number;
  readonly name: string | null;
}

interface Call {
  started: number;
  completed: number;
  /** The first of each; pairs are compared only where they are the only ones. */
  start: CallEnd | null;
  end: CallEnd | null;
  /** Starts that are the expected call, and whether a completion has the expected text. */
  expected: number;
  hasText: boolean;
}

export interface CallSums {
  readonly started: number;
  readonly completed: number;
  readonly ids: number;
  readonly expectedStarts: number;
  /** The completions of each expected start's id, counted for each of them. */
  readonly expectedCompletions: number;
  readonly expectedText: boolean;
}

export interface JudgedCalls {
  readonly failures: LedgerFailure[];
  readonly unauthorized: CallRef[];
  readonly open: number;
}

export class LedgerCalls {
  readonly #calls = new Map<string, Call>();

  started(id: string, sequence: number, name: string | null, expected: boolean): void {
    const call = this.#call(id);
    call.started += 1;
    call.start ??= { sequence, name };
    if (expected) call.expected += 1;
  }

  completed(id: string, sequence: number, name: string | null, hasText: boolean): void {
    const call = this.#call(id);
    call.completed += 1;
    call.end ??= { sequence, name };
    call.hasText ||= hasText;
  }

  #call(id: string): Call {
    let call = this.#calls.get(id);
    if (call === undefined) {
      call = { started: 0, completed: 0, start: null, end: null, expected: 0, hasText: false };
      this.#calls.set(id, call);
    }
    return call;
  }

  sums(): CallSums {
    let [started, completed, expectedStarts, expectedCompletions] = [0, 0, 0, 0];
    let expectedText = false;
    for (const call of this.#calls.values()) {
      started += call.started;
      completed += call.completed;
      expectedStarts += call.expected;
      expectedCompletions += call.expected * call.completed;
      expectedText ||= call.expected > 0 && call.hasText;
    }
    const ids = this.#calls.size;
    return { started, completed, ids, expectedStarts, expectedCompletions, expectedText };
  }

  /**
   * What is wrong with each call, by id in the order of code points, and the calls of tools that are not allowed.
   *
   * @param mayStop the record may stop before an answer: calls without one are counted as `open` and are no failures
   */
  judge(isAllowed: (tool: string) => boolean, mayStop: boolean): JudgedCalls {
    const failures: LedgerFailure[] = [];
    const unauthorized: CallRef[] = [];
    let open = 0;
    for (const [id, call] of [...this.#calls].sort(([a], [b]) => compareUtf8(a, b))) {
      const { started, completed, start, end } = call;
      if (mayStop && started === 1 && completed === 0) {
        open += 1;
        continue;
      }
      if (started !== 1 || completed !== 1 || start === null || end === null) {
        failures.push({ kind: "tool_call_pairing", tool_call_id: id, started, completed });
        continue;
      }
      if (start.name !== null && end.name !== null && start.name !== end.name)
        failures.push({ kind: "tool_name_mismatch", tool_call_id: id });
      if (start.sequence >= end.sequence) failures.push({ kind: "tool_call_order", tool_call_id: id });
      if (start.name !== null && !isAllowed(start.name))
        unauthorized.push({ tool_call_id: id, tool_name: start.name });
    }
    return { failures, unauthorized, open };
  }
}
