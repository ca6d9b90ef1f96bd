/**
 * Collections of a summary that stay bounded, and come out the same in whatever order they were filled and merged: what is
 * kept are the smallest keys. A key that is kept at the end was never dropped on the way, so its value is exact; what
 * was dropped is summed up.
 *
 * @module
 */

/** Order of keys: by code units, so that every platform agrees. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Values by key, at most `limit` of them; `beyond` sums up the others. */
export class BoundedGroups<Value> {
  readonly #limit: number;
  readonly #add: (a: Value, b: Value) => Value;
  readonly #groups: Map<string, Value>;
  /** Null while every key is kept. */
  beyond: Value | null;
  /** The largest kept key, once as many are kept as may be; found when it is asked for. */
  #last: string | null = null;

  /** @param add both values in one, as a new value: associative and commutative */
  constructor(
    limit: number,
    add: (a: Value, b: Value) => Value,
    state: GroupsState<Value> = { groups: [], beyond: null },
  ) {
    this.#limit = limit;
    this.#add = add;
    this.#groups = new Map(state.groups);
    this.beyond = state.beyond;
  }

  get size(): number {
    return this.#groups.size;
  }

  add(key: string, value: Value): void {
    const kept = this.#groups.get(key);
    if (kept !== undefined) {
      this.#groups.set(key, this.#add(kept, value));
      return;
    }
    if (this.#groups.size >= this.#limit) {
      this.#last ??= [...this.#groups.keys()].reduce((a, b) => (compareText(a, b) > 0 ? a : b));
      const last = this.#last;
      if (key > last) {
        this.#drop(value);
        return;
      }
      const dropped = this.#groups.get(last);
      this.#groups.delete(last);
      this.#last = null;
      if (dropped !== undefined) this.#drop(dropped);
    }
    this.#groups.set(key, value);
    this.#last = null;
  }

  /** Adds everything that the other one has. Their limits are the same. */
  merge(other: BoundedGroups<Value>): void {
    for (const [key, value] of other.#groups) this.add(key, value);
    if (other.beyond !== null) this.#drop(other.beyond);
  }

  /** The kept groups in the order of their keys. */
  entries(): (readonly [string, Value])[] {
    return [...this.#groups].sort(([a], [b]) => compareText(a, b));
  }

  state(): GroupsState<Value> {
    return { groups: this.entries(), beyond: this.beyond };
  }

  #drop(value: Value): void {
    this.beyond = this.beyond === null ? value : this.#add(this.beyond, value);
  }
}

/** What can be stored and read back. */
export interface GroupsState<Value> {
  readonly groups: readonly (readonly [string, Value])[];
  readonly beyond: Value | null;
}

/** The first items of an order, at most `limit`; the number of all that were added is kept elsewhere. */
export class BoundedList<Item> {
  readonly #limit: number;
  readonly #compare: (a: Item, b: Item) => number;
  readonly #items: Item[];

  constructor(limit: number, compare: (a: Item, b: Item) => number, items: readonly Item[] = []) {
    this.#limit = limit;
    this.#compare = compare;
    this.#items = [...items];
  }

  /** In order. */
  get items(): readonly Item[] {
    return this.#items;
  }

  add(item: Item): void {
    const last = this.#items.at(-1);
    if (this.#items.length >= this.#limit && last !== undefined && this.#compare(item, last) >= 0) return;
    let [low, high] = [0, this.#items.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const at = this.#items[middle];
      if (at !== undefined && this.#compare(at, item) <= 0) low = middle + 1;
      else high = middle;
    }
    this.#items.splice(low, 0, item);
    if (this.#items.length > this.#limit) this.#items.pop();
  }

  merge(other: BoundedList<Item>): void {
    for (const item of other.#items) this.add(item);
  }
}
