/**
 * One instance of @cedar-policy/cedar-wasm (4.13.0), spoken to in JSON text. The package's own glue keeps one instance
 * for good; a policy that nests too deep leaves that instance broken for every caller after it. Here an instance is an
 * object: one that failed is dropped, and another takes its place.
 *
 * The module is handed in: the Worker imports it, Node reads it from the package.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";

type Callable = (...args: unknown[]) => unknown;

interface CedarExports {
  readonly memory: WebAssembly.Memory;
  readonly __wbindgen_externrefs: WebAssembly.Table;
  readonly __wbindgen_malloc: (size: number, align: number) => number;
  readonly __wbindgen_realloc: (at: number, old: number, size: number, align: number) => number;
  readonly __wbindgen_exn_store: (index: number) => void;
  readonly __externref_table_alloc: () => number;
  readonly __wbindgen_start: () => void;
}

/** Calls that take one JSON document. */
export type CedarCall =
  | "checkParsePolicySet"
  | "checkParseEntities"
  | "policyToJson"
  | "statefulIsAuthorized";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });

/** Imports of the wasm by the part of their name that is no hash. */
const IMPORTS = [
  "parse",
  "stringify",
  "throw",
  "string_get",
  "is_undefined",
  "init_externref_table",
] as const;

export class CedarInstance {
  readonly #exports: CedarExports;
  readonly #calls: Readonly<Record<string, Callable>>;

  /** Throws `RunsealError("cedar-wasm")` for a module that is not that package's. */
  constructor(module: WebAssembly.Module) {
    const imports: Record<string, Record<string, Callable>> = {};
    for (const { module: from, name } of WebAssembly.Module.imports(module)) {
      const which = IMPORTS.find((each) => name.includes(`_${each}`));
      if (which === undefined) throw new RunsealError("cedar-wasm", "the Cedar module has an unknown import");
      imports[from] = { ...imports[from], [name]: this.#import(which) };
    }
    const { exports } = new WebAssembly.Instance(module, imports);
    this.#calls = exports as Readonly<Record<string, Callable>>;
    this.#exports = exports as unknown as CedarExports;
    this.#exports.__wbindgen_start();
  }

  /** Bytes of memory that the instance has taken: it never gives any back. */
  get memoryBytes(): number {
    return this.#exports.memory.buffer.byteLength;
  }

  /**
   * Makes a call. Throws what the wasm throws, after which the instance is not to be used again.
   *
   * @param json the call's document, as JSON text
   */
  call(name: CedarCall, json: string): unknown {
    return this.#export(name)(json);
  }

  /** The texts of a policy set's policies and templates, each sorted by the ids policy0, policy1, policy10... */
  split(text: string): unknown {
    const { at, length } = this.#write(text);
    return this.#export("policySetTextToParts")(at, length);
  }

  /** Parses a policy set and keeps it under the id, in place of the one that was there. */
  preparse(id: string, json: string): unknown {
    const { at, length } = this.#write(id);
    return this.#export("preparsePolicySet")(at, length, json);
  }

  #export(name: string): Callable {
    const found = this.#calls[name];
    if (found === undefined) throw new RunsealError("cedar-wasm", "the Cedar module lacks an export");
    return found;
  }

  /** What the wasm asks of its host, in the conventions of wasm-bindgen. */
  #import(which: (typeof IMPORTS)[number]): Callable {
    switch (which) {
      case "parse":
        return (at, length) => this.#guarded(() => JSON.parse(this.#read(Number(at), Number(length))));
      case "stringify":
        // What is passed in is JSON text already.
        return (value) => value;
      case "throw":
        return (at, length) => {
          throw new RunsealError("cedar-failed", this.#read(Number(at), Number(length)));
        };
      case "string_get":
        return (out, value) => {
          const { at, length } = typeof value === "string" ? this.#write(value) : { at: 0, length: 0 };
          const view = new DataView(this.#exports.memory.buffer);
          view.setInt32(Number(out) + 4, length, true);
          view.setInt32(Number(out), at, true);
        };
      case "is_undefined":
        return (value) => value === undefined;
      case "init_externref_table":
        return () => {
          const table = this.#exports.__wbindgen_externrefs;
          const offset = table.grow(4);
          table.set(0, undefined);
          for (const [index, value] of [undefined, null, true, false].entries())
            table.set(offset + index, value);
        };
    }
  }

  /** Hands an error to the wasm, which gives it back as its own. */
  #guarded(run: () => unknown): unknown {
    try {
      return run();
    } catch (error) {
      const index = this.#exports.__externref_table_alloc();
      this.#exports.__wbindgen_externrefs.set(index, error);
      this.#exports.__wbindgen_exn_store(index);
      return undefined;
    }
  }

  #read(at: number, length: number): string {
    return decoder.decode(new Uint8Array(this.#exports.memory.buffer, at >>> 0, length >>> 0));
  }

  #write(text: string): { at: number; length: number } {
    const room = text.length * 3;
    const at = this.#exports.__wbindgen_malloc(room, 1) >>> 0;
    const { written } = encoder.encodeInto(text, new Uint8Array(this.#exports.memory.buffer, at, room));
    if (written === room) return { at, length: room };
    // The wasm frees what it is told that the text has.
    return { at: this.#exports.__wbindgen_realloc(at, room, written, 1) >>> 0, length: written };
  }
}
