/**
 * The order of object keys: by UTF-8 bytes, which is the order of code points and not that of UTF-16 units
 * (U+FF5E comes before U+1F600, whose first unit is 0xD83D).
 *
 * @module
 */

/** Order of two texts by their UTF-8 bytes: negative, zero or positive. */
export function compareUtf8(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** A surrogate stands for a code point past U+FFFF: it ranks after every other unit. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
