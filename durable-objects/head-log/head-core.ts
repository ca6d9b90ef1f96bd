/**
 * What a log of heads is between two calls: its storage, tree and key, its alarm with everything that happens then, and
 * what must hold before anything is answered. head-log.ts is its RPC surface.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex, utf8 } from "../../shared/bytes.ts";
import type { Signer } from "../../shared/crypto/port.ts";
import { RunsealError } from "../../shared/errors.ts";
import { RightEdge } from "../../shared/merkle/edge.ts";
import { leafHash } from "../../shared/merkle/hash.ts";
import { TILE_WIDTH } from "../../shared/merkle/tiles.ts";
import { formatVkey, logKey } from "../../shared/note/vkey.ts";
import type { Env } from "../../workers/env.ts";
import { logEvent } from "../../workers/log-event.ts";
import type { Unavailable } from "../principal-log/types.ts";
import { unavailable } from "../principal-log/types.ts";
import { Mirror } from "../tile-store/mirror-keeper.ts";
import { consistencyPath, hashList } from "../tile-store/proofs.ts";
import { TileTree } from "../tile-store/tile-tree.ts";
import { AnchorStorage } from "./anchor-storage.ts";
import { ensureFirstHead } from "./first-head.ts";
import { judgeReport } from "./judge.ts";
import { listHeads } from "./list.ts";
import { LogKeys } from "./log-keys.ts";
import type { RegistryNews } from "./news.ts";
import { readRegistry } from "./news.ts";
import { HeadReporter } from "./reporter.ts";
import { FIRST_PAUSE_MS, nextBatchAt } from "./schedule.ts";
import type { HeadLogState } from "./storage.ts";
import { HeadStorage } from "./storage.ts";
import type { HeadLogIdentity, HeadLogView, HeadReport, ReportOutcome } from "./types.ts";
import { headLogOrigin, headLogPrefix, SERVICE } from "./types.ts";
import { headLogView } from "./view.ts";
import { WitnessClient } from "./witness-client.ts";

/** Longest pause between two attempts of what fails. */
const MAX_BACKOFF_MS = 60_000;

interface OpenHeadLog {
  readonly identity: HeadLogIdentity;
  readonly origin: string;
  readonly mirror: Mirror;
  readonly reporter: HeadReporter;
}

export class HeadCore {
  readonly storage: HeadStorage;
  readonly tree: TileTree;
  readonly keys: LogKeys;
  readonly witnesses: WitnessClient;
  readonly anchors: AnchorStorage;
  readonly #ctx: DurableObjectState;
  readonly #env: Env;
  #open: OpenHeadLog | null = null;
  #starting: Promise<void> | null = null;
  #started = false;
  #size = 0;
  /** Number of the last report. */
  #reports = 0;
  #alarmAt: number | null = null;
  #failures = 0;

  constructor(ctx: DurableObjectState, env: Env) {
    this.#ctx = ctx;
    this.#env = env;
    this.storage = new HeadStorage(ctx.storage);
    this.tree = new TileTree(this.storage.tiles, nativeCrypto);
    this.keys = new LogKeys(this.storage, env);
    this.witnesses = new WitnessClient(ctx.storage.sql, env, (detail) =>
      this.storage.raiseAlarm({ name: "witness-disagrees", logId: null, detail, atMs: Date.now() }),
    );
    this.anchors = new AnchorStorage(ctx.storage.sql);
    this.#reload();
    const identity = this.storage.identity();
    if (identity !== null) this.bind(JSON.parse(identity) as HeadLogIdentity);
  }

  /** Leaves in the log, as memory has it. */
  get size(): number {
    return this.#size;
  }

  /** Which log this is; null before the first caller. */
  get identity(): HeadLogIdentity | null {
    return this.#open?.identity ?? null;
  }

  /** To be called once, before anything else is let in. */
  async start(): Promise<void> {
    this.#alarmAt = await this.#ctx.storage.getAlarm();
  }

  /** Takes the head of a log. It is durable when this answers, and listed by one of the next batches. */
  async report(identity: HeadLogIdentity, report: HeadReport): Promise<ReportOutcome> {
    this.bind(identity);
    const { outcome, changed } = judgeReport(nativeCrypto, this.storage.head(report.logId), report);
    if (outcome.status === "refused") {
      const detail = `a head of ${report.size} entries was reported that contradicts the last one: ${outcome.reason}`;
      this.storage.raiseAlarm({ name: "head-refused", logId: report.logId, detail, atMs: Date.now() });
      logEvent("head-refused", { owner: identity.owner, log_id: report.logId, reason: outcome.reason });
    }
    if (changed) {
      const { logId, name, generation, size, root, epoch } = report;
      this.#reports += 1;
      const numbered = { report: this.#reports, reportedAtMs: Date.now() };
      this.storage.setHead({ logId, name, generation, size, root, epoch, ...numbered });
      await this.#schedule();
    }
    return outcome;
  }

  /** Lists, signs, mirrors and reports. Nothing may be thrown from here. */
  async alarm(): Promise<void> {
    this.#alarmAt = null;
    const open = this.#open;
    if (open === null) return;
    let done = false;
    try {
      done = await this.#run(open);
    } catch (error) {
      const code = error instanceof RunsealError ? error.code : "";
      logEvent("heads-failed", { owner: open.identity.owner, code });
    }
    if (this.storage.stopped() !== null) return;
    this.#failures = done ? 0 : this.#failures + 1;
    const retryAt = Date.now() + Math.min(MAX_BACKOFF_MS, 1000 * 2 ** Math.min(this.#failures, 6));
    await this.#schedule(done ? null : retryAt);
  }

  /** Leaves from the `first` on, which counts from 1. */
  readonly leaves = (first: number, count: number) => [...this.storage.leaves(first - 1, first - 1 + count)];

  /** Whether nothing is left to try again. */
  async #run(open: OpenHeadLog): Promise<boolean> {
    const news = await this.#start(open.identity, true);
    await open.mirror.compareOnce();
    if (this.storage.stopped() !== null) return true;
    const signers = await this.keys.signers(open.identity.owner, this.storage.state()?.key ?? "");
    if (!this.#isEarly(open)) this.#list(open, news, signers);
    await open.mirror.run();
    const state = this.storage.state();
    if (state === null || state.size === 0) return true;
    const mirrored = this.storage.progress().mirroredSize >= state.size;
    if (open.identity.owner === SERVICE) {
      this.#submitToWitnesses(state);
      return mirrored;
    }
    const reported = await open.reporter.report({
      logId: this.storage.registryId() ?? "",
      name: open.origin,
      generation: 0,
      size: state.size,
      root: toHex(this.#edge(state).root()),
      epoch: state.epoch,
    });
    return mirrored && reported;
  }

  /** Only the service's log is cosigned: public witnesses count logs. */
  #submitToWitnesses({ size, checkpoint }: HeadLogState): void {
    const proof = (from: number) => hashList(consistencyPath(nativeCrypto, this.tree, from, size));
    const lostAt = this.witnesses.submit({ size, checkpoint, proof }, async () => {
      if (this.#alarmAt === lostAt) {
        // It was armed for the case that this answer never comes.
        this.#alarmAt = null;
        await this.#ctx.storage.deleteAlarm();
      }
      await this.#schedule();
    });
  }

  /** Whether the alarm rang for a witness, before the pause since the last batch is over: nothing is listed then. */
  #isEarly({ identity }: OpenHeadLog): boolean {
    const state = this.storage.state();
    if (identity.owner !== SERVICE || state === null) return false;
    const now = Date.now();
    return (this.witnesses.dueAt(this.#size) ?? now + 1) <= now && now < state.signedAtMs + state.intervalMs;
  }

  /** When the next batch is due, in milliseconds; null where there is nothing to list. */
  #nextBatch(): number | null {
    const state = this.storage.state();
    const cadence = state ?? { signedAtMs: 0, fullAtMs: 0, intervalMs: FIRST_PAUSE_MS };
    const knows = { news: this.#reports > (state?.listedReport ?? 0), heads: this.#reports > 0 };
    return nextBatchAt(cadence, Date.now(), knows);
  }

  /** One batch; then memory takes over what it changed. */
  #list(open: OpenHeadLog, news: RegistryNews | null, signers: readonly [Signer, ...Signer[]]): void {
    const written = this.storage.transaction(() =>
      listHeads({
        crypto: nativeCrypto,
        storage: this.storage,
        tree: this.tree,
        origin: open.origin,
        size: this.#size,
        reports: this.#reports,
        nowMs: Date.now(),
        signers,
        epoch: this.keys.current().epoch,
        records: open.identity.owner === SERVICE ? null : (news?.records ?? []),
      }),
    );
    if (written === null) return;
    this.tree.adopt(written.size, written.partial);
    this.#size = written.size;
  }

  /** Which log this is: what storage says, or the first caller. Throws `RunsealError("wrong-log")` for another. */
  bind(identity: HeadLogIdentity): OpenHeadLog {
    const { host, owner } = identity;
    if (this.#open !== null) {
      const same = this.#open.identity.host === host && this.#open.identity.owner === owner;
      if (!same) throw new RunsealError("wrong-log", "the request names another log of heads");
      return this.#open;
    }
    if (this.#ctx.id.name !== undefined && this.#ctx.id.name !== owner) {
      throw new RunsealError("wrong-log", "the request names another log of heads");
    }
    this.storage.setIdentity(JSON.stringify({ host, owner }));
    const origin = headLogOrigin(identity);
    const service = { host, owner: SERVICE };
    this.#open = {
      identity: { host, owner },
      origin,
      mirror: new Mirror({
        crypto: nativeCrypto,
        tree: this.tree,
        leaves: this.leaves,
        bucket: this.#env.MIRROR,
        prefix: headLogPrefix(identity),
        origin,
        head: () => this.storage.state(),
        progress: () => this.storage.progress(),
        progressed: (change) => this.storage.setProgress({ ...this.storage.progress(), ...change }),
        stopped: () => this.storage.stopped() !== null,
        stop: (detail) => this.storage.raiseAlarm({ name: "stopped", logId: null, detail, atMs: Date.now() }),
      }),
      reporter: new HeadReporter(nativeCrypto, this.tree, (report) =>
        this.#env.HEAD_LOG.getByName(SERVICE).report(service, report),
      ),
    };
    return this.#open;
  }

  /** Whatever must hold before anything is answered: identity, key, first head, a mirror that agrees. */
  async prepare(identity: HeadLogIdentity): Promise<Unavailable | null> {
    const open = this.bind(identity);
    try {
      if (!this.#started) await this.#start(identity, false);
    } catch {
      return unavailable("registry-unavailable", "the key of the log of heads could not be read");
    }
    try {
      if (this.storage.stopped() === null) await open.mirror.compareOnce();
    } catch {
      return unavailable("mirror-unavailable", "the mirrored head could not be read", 2);
    }
    const stopped = this.storage.stopped();
    return stopped === null ? null : unavailable("log-stopped", stopped, 3600);
  }

  /** Reads the registry (again, where `fresh`), opens the key, and signs the empty head. */
  async #start(identity: HeadLogIdentity, fresh: boolean): Promise<RegistryNews | null> {
    if (!fresh) {
      this.#starting ??= this.#readRegistry(identity)
        .then(() => {})
        .finally(() => {
          this.#starting = null;
        });
      await this.#starting;
      return null;
    }
    await this.#starting?.catch(() => {});
    return this.#readRegistry(identity);
  }

  async #readRegistry({ host, owner }: HeadLogIdentity): Promise<RegistryNews | null> {
    let news: RegistryNews | null = null;
    if (owner !== SERVICE) {
      try {
        news = await readRegistry(this.#env, owner);
        this.storage.setRegistryId(news.registryId);
      } catch (error) {
        // The last key goes on signing: a registry that is away must not make heads lag.
        if (this.storage.logKey() === null) throw error;
      }
    }
    await this.keys.ensure(owner, owner === SERVICE ? 0 : (news?.epoch ?? null));
    if (owner === SERVICE && this.storage.registryId() === null) {
      const vkey = formatVkey(logKey(nativeCrypto, host, this.keys.current().signer.publicKey));
      this.storage.setRegistryId(toHex(nativeCrypto.sha256(utf8(vkey))));
    }
    ensureFirstHead(this.storage, headLogOrigin({ host, owner }), this.keys.current());
    this.#started = true;
    return news;
  }

  /** Takes over from storage everything that memory holds of the log. */
  #reload(): void {
    this.#size = this.storage.state()?.size ?? 0;
    this.#reports = this.storage.lastReport();
    const first = Math.floor(this.#size / TILE_WIDTH) * TILE_WIDTH;
    const partial = [...this.storage.leaves(first, this.#size)].map((leaf) => leafHash(nativeCrypto, leaf));
    this.tree.load(this.#size, partial);
  }

  #edge(state: HeadLogState): RightEdge {
    return RightEdge.fromBytes(nativeCrypto, state.edge);
  }

  /** Arms the alarm for the next batch, or for another attempt at `at`; never later than it is armed already. */
  async #schedule(at: number | null = null): Promise<void> {
    const next = this.#nextBatch();
    const owner = this.#open?.identity.owner;
    const witnesses = owner === SERVICE ? this.witnesses.dueAt(this.#size) : null;
    const wanted = [at ?? next, witnesses].filter((one) => one !== null);
    const target = wanted.length === 0 ? null : Math.max(Math.min(...wanted), Date.now());
    if (target === null || (this.#alarmAt !== null && this.#alarmAt <= target)) return;
    this.#alarmAt = target;
    await this.#ctx.storage.setAlarm(target);
  }

  /** The log as it answers for itself. */
  view(): HeadLogView {
    return headLogView(this.storage, this.#open?.origin ?? "");
  }
}
