/**
 * Cedar at work for any number of policies: one instance of its wasm, a bounded number of parsed policy sets, and a new
 * instance in place of one that failed. The engine is shared by all callers of a process; a policy set is found by its
 * hash, so that no caller gets another's.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import { CedarInstance } from "./cedar-instance.ts";

/** Policy sets that are kept parsed. */
const MAX_SETS = 16;
/** An instance never gives memory back: beyond this it is dropped before it parses another set. */
const MAX_MEMORY = 48 * 1024 * 1024;

/** A policy set, by a hash of its text. */
export interface CedarSet {
  readonly key: string;
  readonly text: string;
}

export class CedarEngine {
  readonly #module: WebAssembly.Module;
  #instance: CedarInstance | null = null;
  /** Slots by key, the one that was parsed longest ago first. */
  readonly #slots = new Map<string, string>();

  constructor(module: WebAssembly.Module) {
    this.#module = module;
  }

  /** Works with an instance. Throws `RunsealError("cedar-failed")` where it failed; it is dropped then. */
  use<T>(work: (instance: CedarInstance) => T): T {
    try {
      return work(this.#current());
    } catch (error) {
      this.#drop();
      if (error instanceof RunsealError && error.code !== "cedar-failed") throw error;
      throw new RunsealError("cedar-failed", "it nests too deep for Cedar, or needs too much memory");
    }
  }

  /**
   * Asks about a call under a policy set, which is parsed only where it is not kept.
   *
   * @param call the call's JSON text, made for the id of the set
   */
  authorize(set: CedarSet, call: (id: string) => string): unknown {
    return this.use(() => {
      const slot = this.#slots.get(set.key) ?? this.#parse(set);
      return this.#current().call("statefulIsAuthorized", call(slot));
    });
  }

  #current(): CedarInstance {
    this.#instance ??= new CedarInstance(this.#module);
    return this.#instance;
  }

  /** Parses the set, in place of the one that was parsed longest ago where there is no room. */
  #parse(set: CedarSet): string {
    if (this.#current().memoryBytes > MAX_MEMORY) this.#drop();
    let slot = String(this.#slots.size);
    const oldest = this.#slots.entries().next().value;
    if (this.#slots.size >= MAX_SETS && oldest !== undefined) {
      this.#slots.delete(oldest[0]);
      slot = oldest[1];
    }
    this.#current().preparse(slot, `{"staticPolicies":${JSON.stringify(set.text)}}`);
    this.#slots.set(set.key, slot);
    return slot;
  }

  #drop(): void {
    this.#instance = null;
    this.#slots.clear();
  }
}
