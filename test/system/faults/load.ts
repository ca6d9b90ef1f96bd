/**
 * Clients that append, and never give an entry up: one whose answer got lost is sent again, as a client must, until it is
 * answered. What they were told is kept, to be compared with the log afterwards.
 *
 * @module
 */
import { setTimeout as delay } from "node:timers/promises";
import { uuidv7 } from "../../../shared/ids.ts";
import { type CheckedLog, checkHeads, checkLog, Told } from "../../durable-objects/log-check.ts";
import type { TestClient } from "../../support/client.ts";
import type { TestServer } from "../../support/server.ts";

export interface Tenant {
  readonly key: string;
  readonly registryId: string;
}

/** A new tenant. */
export async function createTenant(server: TestServer): Promise<Tenant> {
  const answer = await server.client(server.operatorToken).post("/v1/tenants", { name: "load" });
  if (answer.status !== 201) throw new Error(`tenant: ${answer.status} ${answer.text}`);
  const body = answer.json<{ api_key: string; registry_id: string }>();
  return { key: body.api_key, registryId: body.registry_id };
}

let made = 0;

/** An entry of its own; half of the ids carry a time, half do not. */
export function newEntry(): Record<string, unknown> {
  made += 1;
  const random = crypto.getRandomValues(new Uint8Array(16));
  return {
    id: made % 2 === 0 ? uuidv7(Date.now(), random) : `opaque-${made}-${random[0]}`,
    kind: "tool.call.started",
    run: `run-${made % 7}`,
    call: `call-${made}`,
    action: { tool: "read_file", args: { path: `/tmp/${made}`, text: "x".repeat(made % 200) } },
  };
}

/** A principal under load, and what its clients were told. */
export class LoadedLog {
  readonly path: string;
  readonly told = new Told();
  /** Ids of all entries that were ever sent. */
  readonly sent = new Set<string>();
  /** Answers that were neither 2xx nor a 503 with Retry-After. */
  readonly unexpected: string[] = [];

  constructor(name: string) {
    this.path = `/v1/principals/${name}`;
  }

  /**
   * Sends until it is acknowledged. Returns false where `stopped` says so first; the entries then are without an answer.
   */
  async append(
    client: () => TestClient,
    entries: readonly unknown[],
    query: string,
    stopped: () => boolean,
  ): Promise<boolean> {
    for (const entry of entries) this.sent.add((entry as { id: string }).id);
    while (!stopped()) {
      let answer: Awaited<ReturnType<TestClient["post"]>>;
      try {
        answer = await client().post(`${this.path}/entries${query}`, entries);
      } catch {
        // The server is gone, or went while it answered: whether the entries are stored is not known.
        await delay(20);
        continue;
      }
      if (answer.status === 200 || answer.status === 201 || answer.status === 207) {
        this.told.take(answer.text);
        return true;
      }
      if (answer.status !== 503 || answer.headers.get("retry-after") === null) {
        this.unexpected.push(`${answer.status} ${answer.text.slice(0, 300)}`);
        return false;
      }
      await delay(100);
    }
    return false;
  }

  /** Verifies everything, and that nothing is there that nobody sent. */
  async check(client: TestClient, tenant: Tenant, heads = 25): Promise<CheckedLog> {
    const get = (path: string) => patiently(client, path);
    const checked = await checkLog(get, this.path, tenant.registryId, this.told);
    const strange = checked.ids.filter((id) => !this.sent.has(id));
    if (strange.length > 0) throw new Error(`entries that nobody sent: ${strange.slice(0, 3)}`);
    if (this.unexpected.length > 0) throw new Error(`unexpected answers: ${this.unexpected.slice(0, 3)}`);
    await checkHeads(get, this.path, this.told, heads);
    return checked;
  }
}

/** A GET that is asked again while the service says that it can't answer yet. */
export async function patiently(client: TestClient, path: string): Promise<{ status: number; text: string }> {
  for (let attempt = 0; ; attempt++) {
    const answer = await client.get(path);
    if (answer.status !== 503 || attempt === 200) return answer;
    await delay(100);
  }
}

/** Clients at work. */
export class Load {
  #stopped = false;
  readonly #logs: readonly LoadedLog[];
  readonly #mirrored: boolean;
  readonly #workers: Promise<void>[];
  /** The client to send with; replaced when the server is another one. */
  client: TestClient;
  acknowledged = 0;

  /** @param mirrored whether clients wait for the mirror now and then: while R2 is away those do not get on */
  constructor(client: TestClient, logs: readonly LoadedLog[], clients: number, mirrored = true) {
    this.client = client;
    this.#logs = logs;
    this.#mirrored = mirrored;
    this.#workers = Array.from({ length: clients }, (_, i) => this.#work(i));
  }

  async #work(index: number): Promise<void> {
    const before: { log: LoadedLog; entries: unknown[] }[] = [];
    for (let round = index; !this.#stopped; round++) {
      // Now and then what was acknowledged before is sent again, as it is after a lost answer.
      const again = round % 9 === 0 ? before.at(-1 - (round % 3)) : undefined;
      const log = again?.log ?? (this.#logs[round % this.#logs.length] as LoadedLog);
      const count = round % 4 === 0 ? 1 + (round % 12) : 1;
      const entries = again?.entries ?? Array.from({ length: count }, newEntry);
      const query =
        this.#mirrored && round % 11 === 0 ? "?wait=mirrored" : round % 13 === 0 ? "?atomic=true" : "";
      if (
        !(await log.append(
          () => this.client,
          entries,
          query,
          () => this.#stopped,
        ))
      )
        continue;
      this.acknowledged += entries.length;
      before.push({ log, entries });
    }
  }

  /** Waits until so many more entries are acknowledged: the load has taken hold. */
  async progress(more: number): Promise<void> {
    const target = this.acknowledged + more;
    for (let waited = 0; this.acknowledged < target; waited += 10) {
      if (waited > 60_000)
        throw new Error(`the load does not get on: ${this.#logs.flatMap(({ unexpected }) => unexpected)[0]}`);
      await delay(10);
    }
  }

  /** Ends the load; what is being sent may end without an answer. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#workers);
  }
}

/** Whether the long forms are asked for: `npm run soak`. */
export const SOAK = process.env.RUNSEAL_SOAK === "1";
