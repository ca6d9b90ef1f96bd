/**
 * A map with a bound on its size: full, it forgets its oldest member, and tells so.
 *
 * @module
 */

/** `value` changes when the key is set again; the member stays the same one, and as old as it is. */
interface Member<Key, Value> {
  readonly key: Key;
  value: Value;
}

export class BoundedMap<Key, Value> {
  readonly #max: number;
  readonly #onForget: (key: Key, value: Value) => void;
  readonly #members = new Map<Key, Member<Key, Value>>();
  /**
   * Members by age, from `#oldest` on; those that were deleted are still there. A Map is in this order, too, but finding
   * its first member takes it as long as there were members deleted before it.
   */
  #order: Member<Key, Value>[] = [];
  #oldest = 0;

  constructor(max: number, onForget: (key: Key, value: Value) => void) {
    this.#max = max;
    this.#onForget = onForget;
  }

  get(key: Key): Value | undefined {
    return this.#members.get(key)?.value;
  }

  /** A key that is there keeps its age. */
  set(key: Key, value: Value): void {
    const known = this.#members.get(key);
    if (known !== undefined) {
      known.value = value;
      return;
    }
    if (this.#members.size >= this.#max) this.#forgetOldest();
    if (this.#order.length > 2 * this.#max) {
      this.#order = [...this.#members.values()];
      this.#oldest = 0;
    }
    const member = { key, value };
    this.#order.push(member);
    this.#members.set(key, member);
  }

  #forgetOldest(): void {
    for (; this.#oldest < this.#order.length; this.#oldest += 1) {
      const member = this.#order[this.#oldest];
      // A key that was deleted and set again is another member.
      if (member === undefined || this.#members.get(member.key) !== member) continue;
      this.#members.delete(member.key);
      this.#onForget(member.key, member.value);
      return;
    }
  }

  delete(key: Key): void {
    this.#members.delete(key);
  }

  /** From the oldest on. */
  *values(): Generator<Value> {
    for (const { value } of this.#members.values()) yield value;
  }
}
