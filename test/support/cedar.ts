/**
 * The Cedar engine in Node: its module is read from the package.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { CedarEngine } from "../../shared/recheck/cedar-engine.ts";

/** A new engine, as the Worker makes one. */
export function cedarEngine(): CedarEngine {
  const entry = createRequire(import.meta.url).resolve("@cedar-policy/cedar-wasm/nodejs");
  const bytes = readFileSync(join(dirname(entry), "cedar_wasm_bg.wasm"));
  // The Worker's types know no way to compile: workerd does it before the Worker starts.
  const { Module } = WebAssembly as unknown as { Module: new (bytes: Uint8Array) => WebAssembly.Module };
  return new CedarEngine(new Module(bytes));
}
