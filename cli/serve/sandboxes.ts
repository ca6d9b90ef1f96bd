/**
 * Sandboxes of `module` policies for the embedded server: a second workerd, which is killed where a module does not come
 * back in time. workerd enforces no budget of its own here, and a module that loops would stop the one that takes
 * entries. It is started when the first module is opened.
 *
 * @module
 */
import { type Miniflare, Response } from "miniflare";
import { OWNER_VARIABLE } from "./processes.ts";
import { createMiniflare } from "./runtime.ts";

/** A call's time in milliseconds, both runs of an evaluation. */
const CALL_MS = 2_000;

/** Makes the sandbox unless it is there, and makes the call: as workers/policies/module.ts asks for it. */
const SCRIPT = `
export default {
  async fetch(request, env) {
    const { name, code, input } = await request.json();
    const entry = env.LOADER.get(name, () => ({ ...code, env: {}, globalOutbound: null })).getEntrypoint();
    try {
      return Response.json(input === null ? await entry.check() : await entry.decideTwice(input));
    } catch {
      return new Response(null, { status: 422 });
    }
  },
};
`;

export class Sandboxes {
  readonly #owner: string;
  readonly #compatibilityDate: string;
  #runtime: Miniflare | null = null;
  /** Calls are made one at a time: a module that is late costs nobody else an answer. */
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;

  /**
   * @param owner written into workerd's environment; see processes.ts
   * @param compatibilityDate of the service's own Worker
   */
  constructor(owner: string, compatibilityDate: string) {
    this.#owner = owner;
    this.#compatibilityDate = compatibilityDate;
  }

  /** Answers a call in its turn: 200 with the sandbox's answer, 422 where it failed, 504 where it was late. */
  call(body: string): Promise<Response> {
    const turn = this.#last.then(() => this.#call(body));
    this.#last = turn.catch(() => {});
    return turn;
  }

  /** Kills the sandboxes, whatever they do. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#kill();
  }

  async #call(body: string): Promise<Response> {
    if (this.#closed) return new Response(null, { status: 503 });
    const runtime = this.#start();
    await runtime.ready;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<null>((resolve) => {
      timer = setTimeout(() => resolve(null), CALL_MS);
    });
    const call = runtime.dispatchFetch("http://sandboxes/", { method: "POST", body });
    // Its workerd may be killed while it waits: that is then nobody's error.
    call.catch(() => {});
    try {
      const answer = await Promise.race([call, late]);
      if (answer !== null) return new Response(await answer.text(), { status: answer.status });
    } catch {
      // The process ended: out of memory, most likely.
    } finally {
      clearTimeout(timer);
    }
    await this.#kill();
    return new Response(null, { status: 504 });
  }

  #start(): Miniflare {
    this.#runtime ??= createMiniflare({
      host: "127.0.0.1",
      cf: false,
      telemetry: { enabled: false },
      unsafeRuntimeEnv: { [OWNER_VARIABLE]: this.#owner },
      handleStructuredLogs: () => {},
      name: "sandboxes",
      modules: true,
      script: SCRIPT,
      compatibilityDate: this.#compatibilityDate,
      workerLoaders: { LOADER: {} },
    });
    return this.#runtime;
  }

  async #kill(): Promise<void> {
    const runtime = this.#runtime;
    this.#runtime = null;
    // It sends SIGKILL.
    await runtime?.dispose().catch(() => {});
  }
}
