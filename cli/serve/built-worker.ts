/**
 * What the build leaves in dist/worker/ for the embedded server: `worker.json` of this shape, and the bundle's modules
 * in `bundle/`.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ServeError } from "./errors.ts";
import type { Migration } from "./migrations.ts";

/** A file of the bundle, as Miniflare loads it; the entry comes first. */
export interface BuiltModule {
  readonly type: "ESModule" | "CompiledWasm" | "Data" | "Text";
  /** Relative to `bundle/`. */
  readonly path: string;
}

/** A D1 database and what brings it up to date. */
export interface BuiltDatabase {
  readonly binding: string;
  /** Where wrangler records what was applied. */
  readonly table: string;
  /** In the order in which they apply. */
  readonly migrations: readonly Migration[];
}

type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

/** The classic worker options of Miniflare, without sources and secrets: bindings, dates, flags. */
export interface BuiltOptions {
  readonly [option: string]: unknown;
  /** Part of every Durable Object's identity in storage. */
  readonly name: string;
  readonly compatibilityDate?: string;
  readonly bindings: Record<string, Json>;
  readonly d1Databases?: Record<string, { id: string }>;
}

export interface BuiltWorker {
  /** What wrangler.toml says. */
  readonly options: BuiltOptions;
  readonly modules: readonly BuiltModule[];
  readonly databases: readonly BuiltDatabase[];
}

/** Reads what the build left. Throws ServeError `not-built` where there is nothing. */
export function readBuiltWorker(workerDir: string): BuiltWorker {
  try {
    return JSON.parse(readFileSync(join(workerDir, "worker.json"), "utf8")) as BuiltWorker;
  } catch {
    throw new ServeError("not-built", `${workerDir} holds no built Worker. Run: npm run build`);
  }
}
