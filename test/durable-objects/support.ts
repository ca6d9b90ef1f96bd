/**
 * A log under test inside workerd: reached over HTTP as a client reaches it, and by its object where a test looks into
 * or breaks its storage.
 *
 * @module
 */
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import type { Frame } from "../../durable-objects/principal-log/frame.ts";
import { encodeFrame } from "../../durable-objects/principal-log/frame.ts";
import type { PrincipalLog } from "../../durable-objects/principal-log/principal-log.ts";
import type { LogIdentity } from "../../durable-objects/principal-log/types.ts";
import { logObjectName } from "../../durable-objects/principal-log/types.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { utf8 } from "../../shared/bytes.ts";
import { logPrefix } from "../../shared/entry/log-id.ts";
import { parseBatch } from "../../shared/entry/parse-batch.ts";
import type { Answer, TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import type { CheckedLog } from "./log-check.ts";
import { checkHeads, checkLog, Told } from "./log-check.ts";

export { entries, entry, newTenant } from "../workers/support.ts";

export class TestLog {
  readonly tenant: TestTenant;
  readonly path: string;
  readonly name: string;
  /** Everything that an append's answer said. */
  readonly told = new Told();

  constructor(tenant: TestTenant, name: string) {
    this.tenant = tenant;
    this.name = name;
    this.path = `/v1/principals/${name}`;
  }

  /** Appends, and remembers what was acknowledged. */
  async append(body: unknown, query = ""): Promise<Answer> {
    const answer = await call(this.tenant.key, "POST", `${this.path}/entries${query}`, body);
    if (answer.status < 300) this.told.take(answer.text);
    return answer;
  }

  get(path: string): Promise<Answer> {
    return call(this.tenant.key, "GET", `${this.path}${path}`);
  }

  async identity(): Promise<LogIdentity> {
    const directory = env.TENANT_DIRECTORY.getByName(this.tenant.id);
    const [principal, tenant] = [await directory.principal(this.name), await directory.tenant()];
    if (principal === null || tenant === null) throw new Error(`there is no principal ${this.name} yet`);
    return {
      host: tenant.host,
      tenant: tenant.id,
      principal: principal.id,
      generation: principal.generation,
      name: principal.name,
      registryId: tenant.registryId,
    };
  }

  async stub(): Promise<DurableObjectStub<PrincipalLog>> {
    return env.PRINCIPAL_LOG.getByName(logObjectName(await this.identity()));
  }

  /** Key prefix of the log in R2. */
  async prefix(): Promise<string> {
    return logPrefix(await this.identity());
  }

  /** Runs inside the object. */
  async inside<R>(work: (state: DurableObjectState) => R | Promise<R>): Promise<R> {
    return runInDurableObject(await this.stub(), (_instance, state) => work(state));
  }

  /** Takes the object's memory away. */
  async evict(): Promise<void> {
    const stub = await this.stub();
    // One that is not running is woken first: there must be something to evict.
    await runInDurableObject(stub, () => {});
    await evictDurableObject(stub);
  }

  /** Runs the alarm now; whether one was set. */
  async alarm(): Promise<boolean> {
    return runDurableObjectAlarm(await this.stub());
  }

  /** When the alarm is set to go off; null where none is. */
  async alarmAt(): Promise<number | null> {
    return this.inside((state) => state.storage.getAlarm());
  }

  /** Where the log's consumers are, from its storage. */
  async progress(): Promise<{ flushed: number; archived: number; mirrored: number; size: number }> {
    return this.inside((state) => {
      const [progress] = state.storage.sql.exec("SELECT * FROM progress").toArray();
      const [head] = state.storage.sql.exec("SELECT size FROM head").toArray();
      return {
        flushed: Number(progress?.flushed_seq ?? 0),
        archived: Number(progress?.archived_seq ?? 0),
        mirrored: Number(progress?.mirrored_size ?? 0),
        size: Number(head?.size ?? 0),
      };
    });
  }

  /** Verifies the whole log, stored and exported, and compares it with everything that it ever said. */
  async check(): Promise<CheckedLog> {
    const get = (path: string) => call(this.tenant.key, "GET", path);
    const checked = await checkLog(get, this.path, this.tenant.registryId, this.told);
    await checkHeads(get, this.path, this.told, 20);
    return checked;
  }
}

/** Entries as the Worker hands them to a log. */
export function frameOf(sent: readonly unknown[]): { ids: string[]; frame: Frame } {
  const { entries: parsed } = parseBatch(utf8(JSON.stringify(sent)), "json", {
    crypto: nativeCrypto,
    credential: new Uint8Array(16),
    defaultReporter: "agent",
    writer: "client",
    random: (count) => crypto.getRandomValues(new Uint8Array(count)),
    newId: () => crypto.randomUUID(),
  });
  const prepared = parsed.map((one) => {
    if (!one.ok) throw new Error(`entry refused: ${one.problem.code} ${one.problem.pointer}`);
    return one.entry;
  });
  return {
    ids: prepared.map(({ id }) => id),
    frame: encodeFrame(prepared.map(({ body, row }) => ({ bytes: body, row }))),
  };
}

/** The last part of an answer's problem type. */
export function problemOf(answer: Answer): string {
  return String(answer.body?.type ?? "").replace("urn:runseal:problem:", "");
}

/** The results of an append's answer. */
export function resultsOf(answer: Answer): {
  index: number;
  id?: string;
  seq?: number;
  hash?: string;
  status?: string;
  error?: { type: string; status: number };
}[] {
  return (answer.body as { results?: never }).results ?? [];
}
