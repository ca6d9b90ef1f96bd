/**
 * What runs beside a policy's module in its sandbox. `stub.js` is evaluated first, and takes away what could make two
 * runs differ; `main.js` asks `decide`, and answers in text.
 *
 * @module
 */

/** The clock that a module sees stands still here: 2000-01-01T00:00:00Z, in milliseconds. */
const FROZEN_TIME = 946_684_800_000;

/** Names of the global scope that reach out, tell the time, or are random. */
const TAKEN_AWAY = [
  "fetch",
  "WebSocket",
  "EventSource",
  "caches",
  "crypto",
  "Crypto",
  "CryptoKey",
  "SubtleCrypto",
  "performance",
  "Performance",
  "scheduler",
  "Scheduler",
  "setTimeout",
  "setInterval",
  "setImmediate",
  "clearTimeout",
  "clearInterval",
  "clearImmediate",
  "navigator",
  "WeakRef",
  "FinalizationRegistry",
  "SharedArrayBuffer",
  "Atomics",
  "Temporal",
  "process",
  "console",
  "Event",
  "CustomEvent",
  "ExtendableEvent",
  "MessageEvent",
  "MessageChannel",
  "File",
  "HTMLRewriter",
];

const STUB = `
const NOW = ${FROZEN_TIME};
const RealDate = Date;
function FrozenDate(...args) {
  if (new.target === undefined) return new RealDate(NOW).toString();
  return Reflect.construct(RealDate, args.length === 0 ? [NOW] : args, new.target);
}
FrozenDate.prototype = RealDate.prototype;
FrozenDate.now = () => NOW;
FrozenDate.parse = RealDate.parse;
FrozenDate.UTC = RealDate.UTC;
RealDate.prototype.constructor = FrozenDate;
globalThis.Date = FrozenDate;
const { format, formatToParts } = Intl.DateTimeFormat.prototype.formatToParts
  ? {
      format: Object.getOwnPropertyDescriptor(Intl.DateTimeFormat.prototype, "format").get,
      formatToParts: Intl.DateTimeFormat.prototype.formatToParts,
    }
  : {};
Object.defineProperty(Intl.DateTimeFormat.prototype, "format", {
  configurable: true,
  get() {
    const real = format.call(this);
    return (date) => real(date === undefined ? NOW : date);
  },
});
Intl.DateTimeFormat.prototype.formatToParts = function (date) {
  return formatToParts.call(this, date === undefined ? NOW : date);
};
let seed = 0;
export function reseed() {
  seed = 0x9e3779b9;
}
Math.random = () => {
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
};
for (const name of ${JSON.stringify(TAKEN_AWAY)}) {
  try {
    delete globalThis[name];
    if (name in globalThis)
      Object.defineProperty(globalThis, name, { value: undefined, writable: false, configurable: false });
  } catch {}
}
`;

const MAIN = `
import { WorkerEntrypoint } from "cloudflare:workers";
import { reseed } from "./stub.js";
import * as policy from "./policy.js";
const { parse, stringify } = JSON;
const { decide } = policy;
const messageOf = (error) => {
  try {
    return String(error && error.message !== undefined ? error.message : error).slice(0, 500);
  } catch {
    return "it threw something that can't be read";
  }
};
async function once(input) {
  reseed();
  try {
    const { request, run } = parse(input);
    const text = stringify(await decide(request, run));
    return typeof text === "string" ? { decision: text } : { failed: "it returned no decision" };
  } catch (error) {
    return { failed: "it threw: " + messageOf(error) };
  }
}
export default class extends WorkerEntrypoint {
  check() {
    return typeof decide === "function";
  }
  async decideTwice(input) {
    return [await once(input), await once(input)];
  }
}
`;

/** The modules of a sandbox around a policy's source; the main one is `main.js`. */
export function sandboxModules(source: string): Record<string, string> {
  return { "main.js": MAIN, "stub.js": STUB, "policy.js": source };
}
