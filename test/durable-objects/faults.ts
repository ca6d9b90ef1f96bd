/**
 * Faults of D1, R2 and the tenant's directory inside workerd: the log's object uses the same bindings as the test.
 *
 * @module
 */
import { env } from "cloudflare:workers";
import { vi } from "vitest";
import { IdIndex } from "../../durable-objects/principal-log/id-index.ts";

/** How a call fails: nothing was done; or it was, and the answer got lost. */
export type Fault = "fails" | "fails but persisted";

export interface Injected {
  /** How often the fault struck. */
  readonly count: () => number;
  readonly mend: () => void;
}

type Batch = D1Database["batch"];

/** Whether a batch is this log's flush: the logs of other tests may be at work still. */
export function isFlushOf(statements: readonly D1PreparedStatement[], name: string): boolean {
  return JSON.stringify(statements).includes(JSON.stringify(name));
}

/** D1's batches fail: the flush. */
export function breakIndexWrites(fault: Fault): Injected {
  const original = env.DB.batch.bind(env.DB) as Batch;
  const spy = vi.spyOn(env.DB, "batch").mockImplementation(async (statements) => {
    if (fault === "fails but persisted") await original(statements);
    throw new Error("D1_ERROR: Network connection lost.");
  });
  return { count: () => spy.mock.calls.length, mend: () => spy.mockRestore() };
}

/** D1 answers nothing at all: neither the flush, nor a look-up by the log. */
export function breakIndex(): Injected {
  const failing = () => {
    throw new Error("D1_ERROR: Network connection lost.");
  };
  const batch = vi.spyOn(env.DB, "batch").mockImplementation(async () => failing());
  const prepare = vi.spyOn(env.DB, "prepare").mockImplementation(failing);
  return {
    count: () => batch.mock.calls.length + prepare.mock.calls.length,
    mend: () => {
      batch.mockRestore();
      prepare.mockRestore();
    },
  };
}

/** D1 can't be asked for a log's runs in pages: a re-check job has its bounds, and no run. */
export function breakRunPages(): Injected {
  const original = env.DB.withSession.bind(env.DB) as (constraint?: string) => D1DatabaseSession;
  let count = 0;
  const spy = vi.spyOn(env.DB, "withSession").mockImplementation((constraint) => {
    const session = original(constraint);
    const prepare = session.prepare.bind(session);
    vi.spyOn(session, "prepare").mockImplementation((sql) => {
      if (!sql.startsWith("SELECT r.run FROM")) return prepare(sql);
      count += 1;
      throw new Error("D1_ERROR: Network connection lost.");
    });
    return session;
  });
  return { count: () => count, mend: () => spy.mockRestore() };
}

/** Puts under keys that match fail. */
export function breakPuts(fault: Fault, matches: (key: string) => boolean): Injected {
  const original = env.MIRROR.put.bind(env.MIRROR) as (...args: unknown[]) => Promise<R2Object | null>;
  let count = 0;
  const spy = vi.spyOn(env.MIRROR, "put").mockImplementation((async (...args: unknown[]) => {
    if (!matches(String(args[0]))) return original(...args);
    count += 1;
    if (fault === "fails but persisted") await original(...args);
    throw new Error("put: internal error; please try again. (10001)");
  }) as never);
  return { count: () => count, mend: () => spy.mockRestore() };
}

/** Gets of keys that match fail. */
export function breakGets(matches: (key: string) => boolean): Injected {
  const original = env.MIRROR.get.bind(env.MIRROR) as (...args: unknown[]) => Promise<R2ObjectBody | null>;
  let count = 0;
  const spy = vi.spyOn(env.MIRROR, "get").mockImplementation((async (...args: unknown[]) => {
    if (!matches(String(args[0]))) return original(...args);
    count += 1;
    throw new Error("get: internal error; please try again. (10001)");
  }) as never);
  return { count: () => count, mend: () => spy.mockRestore() };
}

/** Stops the clock that the service reads at a time; times are milliseconds. */
export function stopClock(at: number): { readonly set: (at: number) => void; readonly mend: () => void } {
  let now = at;
  const spy = vi.spyOn(Date, "now").mockImplementation(() => now);
  return {
    set: (next) => {
      now = next;
    },
    mend: () => spy.mockRestore(),
  };
}

/**
 * Resolves when an append of a new id has arrived at a log. It waits there for its commit, which the test makes late:
 * whatever else is under way overtakes it.
 */
export function nextArrival(): Promise<void> {
  const original = globalThis.setTimeout;
  vi.spyOn(globalThis, "setTimeout").mockImplementation(((run: () => void, delay?: number) =>
    original(run, delay === 0 ? 500 : delay)) as never);
  return new Promise((resolve) => {
    vi.spyOn(IdIndex.prototype, "isCertainlyNew").mockImplementation(() => {
      resolve();
      return true;
    });
  });
}

/** Every third call that matches fails, fails after it was done, or is slow: the others get through. */
export function strike(
  target: object,
  method: string,
  fault: Fault | "slow",
  matches: (first: unknown) => boolean = () => true,
): Injected {
  const original = (Reflect.get(target, method) as (...args: unknown[]) => Promise<unknown>).bind(target);
  let calls = 0;
  let count = 0;
  const spy = vi.spyOn(target as Record<string, () => unknown>, method).mockImplementation((async (
    ...args: unknown[]
  ) => {
    if (!matches(args[0]) || calls++ % 3 !== 0) return original(...args);
    count += 1;
    if (fault === "slow") {
      await new Promise((resolve) => setTimeout(resolve, 150));
      return original(...args);
    }
    if (fault === "fails but persisted") await original(...args);
    throw new Error("D1_ERROR: Network connection lost.");
  }) as never);
  return { count: () => count, mend: () => spy.mockRestore() };
}
