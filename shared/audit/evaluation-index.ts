/**
 * The policy evaluations of a run, by the calls that they are about (docs/audit.md "Policy decisions").
 *
 * @module
 */
import type { EntryView } from "../entry/view.ts";
import { hashText, type Sha256 } from "../recheck/hash.ts";
import { argsOf, type EvaluatedCall } from "./approval-link.ts";
import { BoundedMap } from "./bounded-map.ts";
import { missingOf, objectAt, stringAt } from "./fields.ts";
import { type EntryRef, type FindingList, refOf } from "./finding.ts";

const MAX_KEYS = 65_536;

export interface Evaluation extends EvaluatedCall {
  readonly entry: EntryRef;
  readonly call: string | null;
  /** What the call has to have: nothing more, an approval; or it must not be made. */
  readonly asks: "nothing" | "approval" | "never";
  /** Decided when the run was imported: nobody obeyed or disobeyed it. */
  readonly afterwards: boolean;
}

const ASKS: ReadonlyMap<unknown, Evaluation["asks"]> = new Map([
  ["require_approval", "approval"],
  ["deny", "never"],
  ["abort", "never"],
]);

export class EvaluationIndex {
  readonly #list: FindingList;
  readonly #crypto: Sha256;
  readonly #byKey: BoundedMap<string, Evaluation>;

  constructor(list: FindingList, crypto: Sha256) {
    this.#list = list;
    this.#crypto = crypto;
    this.#byKey = new BoundedMap(MAX_KEYS, (_, forgotten) => {
      if (forgotten.asks !== "nothing") list.limit(`policy evaluations beyond ${MAX_KEYS}`);
    });
  }

  /** The last evaluation of a call counts. */
  add(entry: EntryView): void {
    for (const field of ["decision", "tool", "args"]) {
      const missing = missingOf(entry.action, field);
      if (missing !== null) this.#list.notChecked(refOf(entry), `action.${field}`, missing);
    }
    const args = argsOf(entry);
    const evaluation: Evaluation = {
      entry: refOf(entry),
      call: entry.call,
      asks: ASKS.get(objectAt(entry.action, "decision")?.get("outcome")) ?? "nothing",
      afterwards: objectAt(entry.action, "extra")?.get("decided") === "at import",
      tool: stringAt(entry.action, "tool") ?? "",
      args: args === undefined ? undefined : hashText(this.#crypto, args),
      spec: stringAt(entry.action, "spec_hash"),
    };
    for (const key of this.#keysOf(entry)) this.#byKey.set(key, evaluation);
  }

  /** The evaluation of the call that the act makes. */
  of(act: EntryView): Evaluation | undefined {
    for (const key of this.#keysOf(act)) {
      const found = this.#byKey.get(key);
      // In a step of several calls, each has evaluations of its own.
      if (found !== undefined && (found.call === null || act.call === null || found.call === act.call))
        return found;
    }
    return undefined;
  }

  /** From the closest to the widest: the call; the step with tool and arguments; the step with the tool. */
  #keysOf(entry: EntryView): string[] {
    const { call, step } = entry;
    const tool = stringAt(entry.action, "tool") ?? "";
    const args = argsOf(entry);
    const request = args === undefined ? undefined : `${hashText(this.#crypto, args)} ${tool}`;
    // Without call and step, only the request itself tells what is meant.
    if (call === null && step === null) return request === undefined ? [] : [`request ${request}`];
    return [
      ...(call === null ? [] : [`call ${call}`]),
      ...(step === null || request === undefined ? [] : [`step ${step} ${request}`]),
      ...(step === null ? [] : [`step ${step} ${tool}`]),
    ];
  }
}
