/**
 * The tool specs that an audit hashes approvals with, fetched page by page, in bounded memory.
 *
 * @module
 */
import { stringAt } from "../../shared/audit/fields.ts";
import type { EntryView } from "../../shared/entry/view.ts";
import type { Env } from "../env.ts";
import { readSpecs } from "../tools/read-specs.ts";

/** Specs of one run that are held, their UTF-16 units together, and how many are fetched at a time. */
const MAX_SPECS = 256;
const MAX_UNITS = 4 * 1024 * 1024;
const CHUNK = 16;

const HASH = /^[0-9a-f]{64}$/;
/** Kinds that name a spec which an approval may be bound to. */
const NAMING = new Set(["tool.call.started", "policy.evaluated"]);

export class SpecCache {
  readonly #env: Env;
  readonly #tenant: string;
  readonly #run: string;
  readonly #named = new Set<string>();
  readonly #texts = new Map<string, string>();
  /** Hashes that were named before any approval was asked for: they are fetched once one is. */
  #waiting: string[] = [];
  #approvals = false;
  #units = 0;
  #overflown = false;

  constructor(env: Env, tenant: string, run: string) {
    this.#env = env;
    this.#tenant = tenant;
    this.#run = run;
  }

  /** Whether more were named than are held: approvals of their calls are compared by less than the hash. */
  get overflown(): boolean {
    return this.#overflown;
  }

  /** The canonical text of a spec that an entry so far has named. */
  get(hash: string): string | undefined {
    return this.#texts.get(hash);
  }

  /** Fetches what these entries need; to be called before they are audited. */
  async prepare(entries: readonly EntryView[]): Promise<void> {
    for (const { kind, run, action } of entries) {
      if (kind === "approval.requested") this.#approvals = true;
      if (run !== this.#run || !NAMING.has(kind)) continue;
      const hash = stringAt(action, "spec_hash");
      if (hash === undefined || !HASH.test(hash) || this.#named.has(hash)) continue;
      if (this.#named.size >= MAX_SPECS) {
        this.#overflown ||= this.#approvals;
        continue;
      }
      this.#named.add(hash);
      this.#waiting.push(hash);
    }
    if (this.#approvals) await this.#fetch();
  }

  async #fetch(): Promise<void> {
    const hashes = this.#waiting;
    this.#waiting = [];
    for (let at = 0; at < hashes.length; at += CHUNK) {
      for (const [hash, text] of await readSpecs(this.#env, this.#tenant, hashes.slice(at, at + CHUNK))) {
        if (this.#units + text.length > MAX_UNITS) {
          this.#overflown = true;
          return;
        }
        this.#units += text.length;
        this.#texts.set(hash, text);
      }
    }
  }
}
