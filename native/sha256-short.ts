/**
 * SHA-256 (FIPS 180-4) of short messages, in plain JavaScript. In workerd a native digest costs about 4 microseconds
 * whatever its length, because each call makes objects that cross into native code; commitments and tree nodes are 65
 * to 300 bytes, which this hashes in 1 to 3. `native/crypto.ts` uses it there and nowhere else; the tests hold it
 * against `node:crypto` at every length it is used for. Nothing here depends on a secret's value in time or branches.
 *
 * @module
 */

/** Longest message that it takes. */
export const MAX_SHORT = 1024;

/** First 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4 section 4.2.2). */
const K = Uint32Array.of(
  0x428a2f98,
  0x71374491,
  0xb5c0fbcf,
  0xe9b5dba5,
  0x3956c25b,
  0x59f111f1,
  0x923f82a4,
  0xab1c5ed5,
  0xd807aa98,
  0x12835b01,
  0x243185be,
  0x550c7dc3,
  0x72be5d74,
  0x80deb1fe,
  0x9bdc06a7,
  0xc19bf174,
  0xe49b69c1,
  0xefbe4786,
  0x0fc19dc6,
  0x240ca1cc,
  0x2de92c6f,
  0x4a7484aa,
  0x5cb0a9dc,
  0x76f988da,
  0x983e5152,
  0xa831c66d,
  0xb00327c8,
  0xbf597fc7,
  0xc6e00bf3,
  0xd5a79147,
  0x06ca6351,
  0x14292967,
  0x27b70a85,
  0x2e1b2138,
  0x4d2c6dfc,
  0x53380d13,
  0x650a7354,
  0x766a0abb,
  0x81c2c92e,
  0x92722c85,
  0xa2bfe8a1,
  0xa81a664b,
  0xc24b8b70,
  0xc76c51a3,
  0xd192e819,
  0xd6990624,
  0xf40e3585,
  0x106aa070,
  0x19a4c116,
  0x1e376c08,
  0x2748774c,
  0x34b0bcb5,
  0x391c0cb3,
  0x4ed8aa4a,
  0x5b9cca4f,
  0x682e6ff3,
  0x748f82ee,
  0x78a5636f,
  0x84c87814,
  0x8cc70208,
  0x90befffa,
  0xa4506ceb,
  0xbef9a3f7,
  0xc67178f2,
);

/** Hashing is synchronous and keeps nothing, so that one buffer serves every call. */
const message = new Uint8Array(MAX_SHORT + 128);
const words = new Int32Array(64);
const state = new Int32Array(8);

/** The compression function over one block of the buffer (section 6.2.2). */
function compress(offset: number): void {
  for (let i = 0, at = offset; i < 16; i++, at += 4) {
    words[i] =
      ((message[at] ?? 0) << 24) |
      ((message[at + 1] ?? 0) << 16) |
      ((message[at + 2] ?? 0) << 8) |
      (message[at + 3] ?? 0);
  }
  for (let i = 16; i < 64; i++) {
    const x = words[i - 15] ?? 0;
    const y = words[i - 2] ?? 0;
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    words[i] = ((words[i - 16] ?? 0) + s0 + (words[i - 7] ?? 0) + s1) | 0;
  }
  let a = state[0] ?? 0;
  let b = state[1] ?? 0;
  let c = state[2] ?? 0;
  let d = state[3] ?? 0;
  let e = state[4] ?? 0;
  let f = state[5] ?? 0;
  let g = state[6] ?? 0;
  let h = state[7] ?? 0;
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (K[i] ?? 0) + (words[i] ?? 0)) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  state[0] = ((state[0] ?? 0) + a) | 0;
  state[1] = ((state[1] ?? 0) + b) | 0;
  state[2] = ((state[2] ?? 0) + c) | 0;
  state[3] = ((state[3] ?? 0) + d) | 0;
  state[4] = ((state[4] ?? 0) + e) | 0;
  state[5] = ((state[5] ?? 0) + f) | 0;
  state[6] = ((state[6] ?? 0) + g) | 0;
  state[7] = ((state[7] ?? 0) + h) | 0;
}

/** SHA-256 of at most `MAX_SHORT` bytes: 32 bytes. Throws RangeError for more. */
export function sha256Short(data: Uint8Array): Uint8Array {
  const { length } = data;
  if (length > MAX_SHORT) throw new RangeError("the message is longer than this takes");
  const end = (length + 9 + 63) & ~63;
  message.set(data);
  message[length] = 0x80;
  message.fill(0, length + 1, end);
  const bits = length * 8;
  message[end - 2] = bits >>> 8;
  message[end - 1] = bits;
  state[0] = 0x6a09e667;
  state[1] = 0xbb67ae85 | 0;
  state[2] = 0x3c6ef372;
  state[3] = 0xa54ff53a | 0;
  state[4] = 0x510e527f;
  state[5] = 0x9b05688c | 0;
  state[6] = 0x1f83d9ab;
  state[7] = 0x5be0cd19;
  for (let offset = 0; offset < end; offset += 64) compress(offset);
  const out = new Uint8Array(32);
  for (let i = 0, at = 0; i < 8; i++, at += 4) {
    const word = state[i] ?? 0;
    out[at] = word >>> 24;
    out[at + 1] = word >>> 16;
    out[at + 2] = word >>> 8;
    out[at + 3] = word;
  }
  return out;
}
