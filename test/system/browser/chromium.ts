/**
 * Drives a headless Chromium over its DevTools pipe (file descriptors 3 and 4), with nothing but Node. The browser is
 * Debian's package `chromium`; where it is not installed the tests that need it are skipped by name, except in CI.
 *
 * @module
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { describe, it } from "vitest";

const PATHS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Where the browser is, or undefined. RUNSEAL_CHROMIUM names another. */
export function chromiumPath(): string | undefined {
  const { RUNSEAL_CHROMIUM: named } = process.env;
  return (named === undefined ? PATHS : [named]).find((path) => existsSync(path));
}

/** A `describe` that needs the browser: it fails in CI without it, and is skipped by name elsewhere. */
export function describeWithChromium(name: string, run: () => void): void {
  if (chromiumPath() !== undefined) describe(name, run);
  else if (process.env.CI === "true") {
    describe(name, () => {
      it("finds Chromium", () => {
        throw new Error("Chromium is not installed and CI=true: apt-get install -y chromium");
      });
    });
  } else
    describe.skip(`${name} (needs Chromium: apt-get install -y chromium)`, () => it("is skipped", () => {}));
}

type Params = Readonly<Record<string, unknown>>;
interface Message {
  readonly id?: number;
  readonly sessionId?: string;
  readonly method?: string;
  readonly params?: Params;
  readonly result?: Params;
  readonly error?: { readonly message: string };
}

/** An event of a page, as the DevTools protocol names it. */
export interface PageEvent {
  readonly method: string;
  readonly params: Params;
}

export class Chromium {
  readonly #process: ChildProcess;
  readonly #profile: string;
  readonly #input: Writable;
  readonly #waiting = new Map<
    number,
    { resolve: (result: Params) => void; reject: (error: Error) => void }
  >();
  readonly #listeners = new Map<string, (event: PageEvent) => void>();
  #ids = 0;
  #rest = "";

  private constructor(path: string) {
    this.#profile = mkdtempSync(join(tmpdir(), "runseal-chromium-"));
    this.#process = spawn(
      path,
      [
        "--headless",
        // The tests run as root in CI, where Chromium's sandbox refuses to start.
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--no-first-run",
        "--remote-debugging-pipe",
        `--user-data-dir=${this.#profile}`,
        "about:blank",
      ],
      { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"], detached: true },
    );
    const [, , , input, output] = this.#process.stdio as unknown as [null, null, null, Writable, Readable];
    this.#input = input;
    output.setEncoding("utf8").on("data", (text: string) => this.#read(text));
    this.#process.on("exit", () => {
      for (const { reject } of this.#waiting.values()) reject(new Error("Chromium ended"));
    });
    // Writing to a browser that is gone is reported by what waits for its answer.
    input.on("error", () => {});
  }

  static async launch(): Promise<Chromium> {
    const path = chromiumPath();
    if (path === undefined) throw new Error("Chromium is not installed");
    const browser = new Chromium(path);
    await browser.send("Browser.getVersion");
    return browser;
  }

  #read(text: string): void {
    const parts = (this.#rest + text).split("\0");
    this.#rest = parts.pop() ?? "";
    for (const part of parts) {
      const { id, sessionId, method, params = {}, result = {}, error } = JSON.parse(part) as Message;
      if (id !== undefined) {
        const waiting = this.#waiting.get(id);
        this.#waiting.delete(id);
        if (error === undefined) waiting?.resolve(result);
        else waiting?.reject(new Error(error.message));
      } else if (method !== undefined && sessionId !== undefined) {
        this.#listeners.get(sessionId)?.({ method, params });
      }
    }
  }

  send(method: string, params: Params = {}, sessionId?: string): Promise<Params> {
    this.#ids += 1;
    const id = this.#ids;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#input.write(
        `${JSON.stringify({ id, method, params, ...(sessionId === undefined ? {} : { sessionId }) })}\0`,
      );
    });
  }

  /** Opens a page and waits until it is loaded. */
  async open(url: string): Promise<Page> {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, String(sessionId));
    this.#listeners.set(String(sessionId), (event) => page.took(event));
    for (const domain of ["Page", "Runtime", "Network", "DOM", "Accessibility", "Log"])
      await page.send(`${domain}.enable`);
    const loaded = page.next("Page.loadEventFired");
    await page.send("Page.navigate", { url });
    await loaded;
    return page;
  }

  /** Ends the browser and all its processes. */
  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    await this.send("Browser.close").catch(() => {});
    const late = setTimeout(() => {
      if (this.#process.pid !== undefined) process.kill(-this.#process.pid, "SIGKILL");
    }, 5_000);
    await ended;
    clearTimeout(late);
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

export class Page {
  readonly events: PageEvent[] = [];
  readonly #browser: Chromium;
  readonly #session: string;
  #next: { method: string; resolve: () => void } | null = null;

  constructor(browser: Chromium, session: string) {
    this.#browser = browser;
    this.#session = session;
  }

  send(method: string, params: Params = {}): Promise<Params> {
    return this.#browser.send(method, params, this.#session);
  }

  took(event: PageEvent): void {
    this.events.push(event);
    if (this.#next?.method === event.method) this.#next.resolve();
  }

  /** Resolves with the next event of that name. */
  next(method: string): Promise<void> {
    return new Promise((resolve) => {
      this.#next = { method, resolve };
    });
  }

  /** The value of a JavaScript expression in the page; promises are awaited. */
  async evaluate<T>(expression: string): Promise<T> {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails !== undefined) throw new Error(`in the page: ${JSON.stringify(exceptionDetails)}`);
    return (result as { value: T }).value;
  }

  /** Resolves when the expression is true. */
  async until(expression: string): Promise<void> {
    await this.evaluate(`new Promise((resolve) => {
      const look = () => (${expression}) ? resolve() : setTimeout(look, 10);
      look();
    })`);
  }

  /** Chooses files in a file input, as a person does. */
  async chooseFiles(selector: string, files: readonly string[]): Promise<void> {
    const { root } = await this.send("DOM.getDocument");
    const { nodeId } = await this.send("DOM.querySelector", {
      nodeId: (root as { nodeId: number }).nodeId,
      selector,
    });
    await this.send("DOM.setFileInputFiles", { files, nodeId });
  }
}
