/**
 * The `module` engine: a policy's JavaScript in a Dynamic Worker of its own (docs/policies.md, "module"). The platform
 * holds it to its budget of CPU time. Where the runtime does not, the sandboxes are in another process, which can be
 * killed (cli/serve/sandboxes.ts).
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex, utf8 } from "../../shared/bytes.ts";
import { RunsealError } from "../../shared/errors.ts";
import { JsonReader } from "../../shared/json/reader.ts";
import {
  modulePolicy,
  modulePolicyId,
  type Sandbox,
  type SandboxAnswer,
} from "../../shared/recheck/module.ts";
import type { PolicyDocument } from "../../shared/recheck/policy-document.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import type { OpenedPolicy } from "./engine.ts";
import { sandboxModules } from "./sandbox-source.ts";

/** Before nodejs_compat became the default: `node:` modules are no part of a sandbox. */
const COMPATIBILITY_DATE = "2026-07-01";
/** CPU milliseconds of one call, which runs an evaluation twice. */
const CPU_MS = 100;
/** Milliseconds after which a call that does not come back has failed, whatever it waits for. */
const WALL_MS = 2_000;
/** Evaluations that failed for their budget before the rest is not asked. */
const MAX_OVERRUNS = 3;
/** UTF-16 units of a module's source. */
const MAX_SOURCE = 512 * 1024;

/** What main.js exports. */
interface SandboxEntry {
  check(): Promise<boolean>;
  decideTwice(input: string): Promise<[SandboxAnswer, SandboxAnswer]>;
}

/** Throws 422 `engine-disabled` where modules do not run, and `RunsealError("policy-invalid")` with a pointer. */
export async function openModule(
  env: Env,
  tenant: string,
  { source, policyId, pointer }: PolicyDocument,
): Promise<Pick<OpenedPolicy, "policy" | "close">> {
  const reader = new JsonReader(source);
  const text = reader.peek() === "string" ? reader.readString() : "";
  const refuse = (message: string): never => {
    throw new RunsealError("policy-invalid", message, pointer);
  };
  if (text === "" || text.length > MAX_SOURCE) refuse(`a module's text has 1 to ${MAX_SOURCE} characters`);
  const hash = toHex(nativeCrypto.sha256(utf8(text)));
  // Nothing passes from one job to the next, or from tenant to tenant: each opening is a sandbox of its own.
  const name = `${tenant}.${hash}.${COMPATIBILITY_DATE}.${crypto.randomUUID()}`;
  const entry = entryOf(env, name, {
    compatibilityDate: COMPATIBILITY_DATE,
    mainModule: "main.js",
    modules: sandboxModules(text),
  });
  if (entry === null)
    throw new Problem("engine-disabled", { pointer, detail: "module policies do not run on this server" });
  const ready = await entry.check().catch(() => null);
  if (ready === null) refuse("it does not load: it is no JavaScript module, or it fails while it is loaded");
  if (ready !== true) refuse("it exports no function decide");
  const sandbox = new BoundSandbox(entry);
  return {
    policy: modulePolicy(policyId ?? modulePolicyId(text, nativeCrypto), sandbox),
    close: () => sandbox.close(),
  };
}

type SandboxCode = Pick<WorkerLoaderWorkerCode, "compatibilityDate" | "mainModule" | "modules">;

/** The sandbox of this name, made when it is first called; null where the server has no place for it. */
function entryOf(env: Env, name: string, code: SandboxCode): SandboxEntry | null {
  const { MODULES: loader, MODULE_RUNNER: runner } = env;
  if (loader !== undefined) {
    const limits = { cpuMs: CPU_MS, subRequests: 0 };
    const stub = loader.get(name, () => ({ ...code, env: {}, globalOutbound: null, limits }));
    const entry = stub.getEntrypoint() as unknown as SandboxEntry;
    return {
      check: () => within(entry.check()),
      decideTwice: (input) => within(entry.decideTwice(input)),
    };
  }
  if (runner === undefined) return null;
  // That process has the clock: a call may wait for its turn.
  const ask = async (input: string | null): Promise<unknown> => {
    const body = JSON.stringify({ name, code, input });
    const answer = await runner.fetch("http://sandboxes/", { method: "POST", body });
    if (!answer.ok) throw new RunsealError("sandbox-failed", "the sandbox did not answer");
    return answer.json();
  };
  return {
    check: async () => (await ask(null)) === true,
    decideTwice: async (input) => (await ask(input)) as [SandboxAnswer, SandboxAnswer],
  };
}

/** The sandbox behind its budget. */
class BoundSandbox implements Sandbox {
  readonly #entry: SandboxEntry;
  #overruns = 0;
  #closed = false;

  constructor(entry: SandboxEntry) {
    this.#entry = entry;
  }

  async decideTwice(input: string): Promise<readonly [SandboxAnswer, SandboxAnswer]> {
    if (this.#closed) throw new RunsealError("policy-closed", "the policy was closed");
    if (this.#overruns >= MAX_OVERRUNS) return both("it went beyond its budget before");
    try {
      const [first, second] = await this.#entry.decideTwice(input);
      return [answerOf(first), answerOf(second)];
    } catch {
      // What ends a call from outside: its CPU time, its memory, or this side's clock.
      this.#overruns++;
      return both("it went beyond its budget of time or memory");
    }
  }

  close(): void {
    this.#closed = true;
  }
}

function both(failed: string): readonly [SandboxAnswer, SandboxAnswer] {
  return [{ failed }, { failed }];
}

/** The sandbox's word is a tenant's: what is not as main.js writes it is a failure. */
function answerOf(answer: unknown): SandboxAnswer {
  if (typeof answer === "object" && answer !== null) {
    if ("decision" in answer && typeof answer.decision === "string") return { decision: answer.decision };
    if ("failed" in answer && typeof answer.failed === "string")
      return { failed: answer.failed.slice(0, 600) };
  }
  return { failed: "it returned no decision" };
}

async function within<T>(call: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new RunsealError("sandbox-late", "the sandbox did not answer")), WALL_MS);
  });
  try {
    return await Promise.race([call, late]);
  } finally {
    clearTimeout(timer);
  }
}
