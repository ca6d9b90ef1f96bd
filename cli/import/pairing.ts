/**
 * Pairs results with the calls they answer. Provider ids are no key in real data: empty (Gemini, Cohere), repeated
 * within a run, one id for two tools (FORMATS.md section 2). So an id counts only where exactly one open call of the
 * message has it; else the first open call with equal name and arguments, and then with equal name.
 *
 * @module
 */

/** A call that waits for its result. */
export interface OpenCall {
  /** The minted call id. */
  readonly call: string;
  readonly tool: string;
  /** Canonical text of the arguments. */
  readonly argsText: string;
  /** The provider's id; empty where it gave none. */
  readonly providerId: string;
  /** Which message made the call: calls of one message are one group. */
  readonly group: number;
}

/** What a result says about its call; everything may be missing. */
export interface ResultHint {
  readonly providerId?: string | undefined;
  readonly tool?: string | undefined;
  readonly argsText?: string | undefined;
}

/** How a result was paired: by its provider id, by order, or by order against an id that fits no open call. */
export type PairedBy = "id" | "order" | "order-despite-id";

/** The calls of a run that have no result yet. */
export class OpenCalls {
  #open: OpenCall[] = [];

  add(call: OpenCall): void {
    this.#open.push(call);
  }

  /** The calls that no result answered, in the order in which they were made. */
  get rest(): readonly OpenCall[] {
    return this.#open;
  }

  /** Removes and gives the call that the result answers: latest message first; undefined where none fits. */
  take(hint: ResultHint): { readonly call: OpenCall; readonly by: PairedBy } | undefined {
    const groups = [...new Set(this.#open.map((open) => open.group))].reverse();
    for (const group of hint.providerId ? groups : []) {
      const sameId = this.#open.filter((open) => open.group === group && open.providerId === hint.providerId);
      const call = sameId.length > 1 ? (firstLike(sameId, hint) ?? sameId[0]) : sameId[0];
      if (call !== undefined) return this.#remove(call, sameId.length > 1 ? "order" : "id");
    }
    const latest = groups[0];
    const candidates = this.#open.filter((open) => open.group === latest);
    const call =
      firstLike(candidates, hint) ??
      (hint.tool === undefined && !hint.providerId ? candidates[0] : undefined);
    if (call === undefined) return undefined;
    return this.#remove(call, hint.providerId ? "order-despite-id" : "order");
  }

  /** Removes a call that the source itself pairs with its result. */
  close(call: string): void {
    this.#open = this.#open.filter((open) => open.call !== call);
  }

  #remove(call: OpenCall, by: PairedBy): { readonly call: OpenCall; readonly by: PairedBy } {
    this.#open = this.#open.filter((open) => open !== call);
    return { call, by };
  }
}

/** The first with equal name and arguments, else the first with equal name. */
function firstLike(candidates: readonly OpenCall[], hint: ResultHint): OpenCall | undefined {
  if (hint.tool === undefined) return undefined;
  const named = candidates.filter((open) => open.tool === hint.tool);
  return named.find((open) => open.argsText === hint.argsText) ?? named[0];
}
