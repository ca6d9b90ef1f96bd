/**
 * What tenants declared of kinds of their own, as an isolate knows it: read at most once a minute for each tenant that
 * sends such kinds, and never for the others. An answer that is older than a minute is not used, so that a version
 * holds everywhere a minute after it was stored.
 *
 * @module
 */
import type { StoredDeclaration } from "../../durable-objects/tenant-directory/extensions.ts";
import type { DeclaredKinds, Extensions } from "../../shared/kinds/catalogue.ts";
import { declaredKinds } from "../../shared/kinds/declaration.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";

const CACHE_MS = 60_000;
const MAX_CACHED = 1000;
/** Characters of declarations over all tenants. */
const MAX_CACHED_CHARS = 2 * 1024 * 1024;

/** A tenant's declarations. Each is read when an entry under its prefix is first met. */
class Declarations {
  readonly readAt: number;
  readonly chars: number;
  readonly #texts: ReadonlyMap<string, string>;
  readonly #read = new Map<string, DeclaredKinds>();
  /** A function of its own, made once: it goes with each entry's context. */
  readonly of: Extensions = (prefix) => {
    const text = this.#texts.get(prefix);
    if (text === undefined) return null;
    const kinds = this.#read.get(prefix) ?? declaredKinds(prefix, text);
    this.#read.set(prefix, kinds);
    return kinds;
  };

  constructor(stored: readonly StoredDeclaration[], readAt: number) {
    this.readAt = readAt;
    this.#texts = new Map(stored.map(({ prefix, text }) => [prefix, text]));
    this.chars = stored.reduce((sum, { text }) => sum + text.length, 0);
  }
}

const cache = new Map<string, Declarations>();
let cachedChars = 0;

/** Breaks off the reading of a batch at its first kind of the tenant's own: what is declared has to be asked for. */
export class DeclarationsNeeded extends Error {
  override readonly name = "DeclarationsNeeded";
}

/** What this isolate knows of the tenant's declarations. Throws `DeclarationsNeeded`. */
export function knownExtensions(tenant: string): Extensions {
  const known = cache.get(tenant);
  if (known === undefined || Date.now() - known.readAt >= CACHE_MS) throw new DeclarationsNeeded();
  return known.of;
}

/** The tenant's declarations, asked of its directory. Throws a 503 problem. */
export async function readExtensions(env: Env, tenant: string): Promise<Extensions> {
  // Before the call: what is stored while it is under way may not be in the answer.
  const readAt = Date.now();
  let stored: readonly StoredDeclaration[];
  try {
    stored = await env.TENANT_DIRECTORY.getByName(tenant).extensions();
  } catch {
    throw new Problem("unavailable", {
      detail: "what is declared of this kind can't be read",
      retryAfter: 1,
    });
  }
  const declarations = new Declarations(stored, readAt);
  forgetExtensions(tenant);
  if (cache.size >= MAX_CACHED || cachedChars + declarations.chars > MAX_CACHED_CHARS) {
    cache.clear();
    cachedChars = 0;
  }
  cache.set(tenant, declarations);
  cachedChars += declarations.chars;
  return declarations.of;
}

/** Forgets the tenant's declarations in this isolate: they were changed from here. */
export function forgetExtensions(tenant: string): void {
  cachedChars -= cache.get(tenant)?.chars ?? 0;
  cache.delete(tenant);
}
