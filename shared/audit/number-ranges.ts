/**
 * Which whole numbers were seen, as ranges with their ends: sequences that come in order take the memory of one range,
 * however long they are.
 *
 * @module
 */

/** A run of numbers without a gap; `low` and `high` are what came with its ends. */
export interface NumberRange<Mark> {
  readonly from: number;
  readonly to: number;
  readonly low: Mark;
  readonly high: Mark;
}

export class NumberRanges<Mark> {
  readonly #ranges: NumberRange<Mark>[] = [];

  /** In ascending order. */
  get ranges(): readonly NumberRange<Mark>[] {
    return this.#ranges;
  }

  has(number: number): boolean {
    const range = this.#ranges[this.#placeOf(number)];
    return range !== undefined && range.from <= number;
  }

  /** Adds the number, and says whether it is new. */
  add(number: number, mark: Mark): boolean {
    const place = this.#placeOf(number);
    const after = this.#ranges[place];
    if (after !== undefined && after.from <= number) return false;
    const before = this.#ranges[place - 1];
    const joinsBefore = before !== undefined && before.to === number - 1;
    const joinsAfter = after !== undefined && after.from === number + 1;
    const joined: NumberRange<Mark> = {
      from: joinsBefore ? before.from : number,
      low: joinsBefore ? before.low : mark,
      to: joinsAfter ? after.to : number,
      high: joinsAfter ? after.high : mark,
    };
    this.#ranges.splice(place - (joinsBefore ? 1 : 0), Number(joinsBefore) + Number(joinsAfter), joined);
    return true;
  }

  /** The place of the first range that does not end before the number. */
  #placeOf(number: number): number {
    let low = 0;
    let high = this.#ranges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#ranges[middle]?.to ?? number) < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
