/**
 * A map with a bound on its size: full, it forgets its oldest member, and tells so.
 *
 * @module
 */
export class BoundedMap<Key, Value> {
  readonly #max: number;
  readonly #onForget: (key: Key, value: Value) => void;
  readonly #members = new Map<Key, Value>();
  /**
   * Keys by age, from `#oldest` on; those that were deleted are still there. A Map is in this order, too, but finding
   * its first member takes it as long as there were members deleted before it.
   */
  #order: Key[] = [];
  #oldest = 0;

  constructor(max: number, onForget: (key: Key, value: Value) => void) {
    this.#max = max;
    this.#onForget = onForget;
  }

  get(key: Key): Value | undefined {
    return this.#members.get(key);
  }

  /** A key that is there keeps its age. */
  set(key: Key, value: Value): void {
    if (!this.#members.has(key)) {
      if (this.#members.size >= this.#max) this.#forgetOldest();
      if (this.#order.length > 2 * this.#max) {
        this.#order = [...this.#members.keys()];
        this.#oldest = 0;
      }
      this.#order.push(key);
    }
    this.#members.set(key, value);
  }

  #forgetOldest(): void {
    for (; this.#oldest < this.#order.length; this.#oldest += 1) {
      const key = this.#order[this.#oldest];
      if (key === undefined) continue;
      const value = this.#members.get(key);
      if (value === undefined) continue;
      this.#members.delete(key);
      this.#onForget(key, value);
      return;
    }
  }

  delete(key: Key): void {
    this.#members.delete(key);
  }

  values(): IterableIterator<Value> {
    return this.#members.values();
  }
}
