/**
 * A log of heads (design section 4): a tenant's, over the heads of its logs; or the service's, over the tenants' logs of
 * heads. Logs report to it from their alarms; its own alarm lists what is new, signs and mirrors. docs/heads.md.
 *
 * @module
 */
import { DurableObject } from "cloudflare:workers";
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex, utf8 } from "../../shared/bytes.ts";
import type { Signer } from "../../shared/crypto/port.ts";
import { RunsealError } from "../../shared/errors.ts";
import { RightEdge } from "../../shared/merkle/edge.ts";
import { EMPTY_ROOT, leafHash } from "../../shared/merkle/hash.ts";
import type { TileRef } from "../../shared/merkle/tiles.ts";
import { TILE_WIDTH } from "../../shared/merkle/tiles.ts";
import { signCheckpoint } from "../../shared/note/checkpoint.ts";
import { formatVkey, logKey } from "../../shared/note/vkey.ts";
import type { Env } from "../../workers/env.ts";
import { logEvent } from "../../workers/log-event.ts";
import type { Unavailable } from "../principal-log/types.ts";
import { unavailable } from "../principal-log/types.ts";
import { Mirror } from "../tile-store/mirror-keeper.ts";
import { consistencyPath, inclusionPaths, tileBytes } from "../tile-store/proofs.ts";
import { TileTree } from "../tile-store/tile-tree.ts";
import { judgeReport } from "./judge.ts";
import { listHeads } from "./list.ts";
import { LogKeys } from "./log-keys.ts";
import type { RegistryNews } from "./news.ts";
import { readRegistry } from "./news.ts";
import { HeadReporter } from "./reporter.ts";
import { FIRST_PAUSE_MS, nextBatchAt } from "./schedule.ts";
import type { HeadLogState } from "./storage.ts";
import { HeadStorage } from "./storage.ts";
import type {
  BytesOutcome,
  HeadLogIdentity,
  HeadLogView,
  HeadReport,
  HeadsOutcome,
  LeavesOutcome,
  ProofOutcome,
  ReportOutcome,
  ViewOutcome,
} from "./types.ts";
import { headLogOrigin, headLogPrefix, SERVICE } from "./types.ts";

/** Bytes of leaves that one call answers at most, but for a single leaf. */
const MAX_LEAF_BYTES = 1024 * 1024;
/** Longest pause between two attempts of what fails. */
const MAX_BACKOFF_MS = 60_000;

interface OpenHeadLog {
  readonly identity: HeadLogIdentity;
  readonly origin: string;
  readonly mirror: Mirror;
  readonly reporter: HeadReporter;
}

export class HeadLog extends DurableObject<Env> {
  readonly #storage: HeadStorage;
  readonly #tree: TileTree;
  readonly #keys: LogKeys;
  #open: OpenHeadLog | null = null;
  #starting: Promise<void> | null = null;
  #started = false;
  #size = 0;
  /** Number of the last report. */
  #reports = 0;
  #alarmAt: number | null = null;
  #failures = 0;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#storage = new HeadStorage(ctx.storage);
    this.#tree = new TileTree(this.#storage.tiles, nativeCrypto);
    this.#keys = new LogKeys(this.#storage, env);
    this.#reload();
    const identity = this.#storage.identity();
    if (identity !== null) this.#bind(JSON.parse(identity) as HeadLogIdentity);
    void ctx.blockConcurrencyWhile(async () => {
      this.#alarmAt = await ctx.storage.getAlarm();
    });
  }

  /** Takes the head of a log. It is durable when this answers, and listed by one of the next batches. */
  async report(identity: HeadLogIdentity, report: HeadReport): Promise<ReportOutcome> {
    this.#bind(identity);
    const { outcome, changed } = judgeReport(nativeCrypto, this.#storage.head(report.logId), report);
    if (outcome.status === "refused") {
      const detail = `a head of ${report.size} entries was reported that contradicts the last one: ${outcome.reason}`;
      this.#storage.raiseAlarm({ name: "head-refused", logId: report.logId, detail, atMs: Date.now() });
      logEvent("head-refused", { owner: identity.owner, log_id: report.logId, reason: outcome.reason });
    }
    if (changed) {
      const { logId, name, generation, size, root, epoch } = report;
      this.#reports += 1;
      const numbered = { report: this.#reports, reportedAtMs: Date.now() };
      this.#storage.setHead({ logId, name, generation, size, root, epoch, ...numbered });
      await this.#schedule();
    }
    return outcome;
  }

  /** The signed head and how old it is. */
  async view(identity: HeadLogIdentity): Promise<ViewOutcome> {
    return (await this.#prepare(identity)) ?? { ok: true, view: this.#view() };
  }

  /** A page of the heads that are known, by log id (hex), after the given one. Answers for a stopped log, too. */
  async heads(identity: HeadLogIdentity, after: string, limit: number): Promise<HeadsOutcome> {
    const refused = await this.#prepare(identity);
    if (refused !== null && refused.code !== "log-stopped") return refused;
    const listed = this.#storage.state()?.listedReport ?? 0;
    const page = this.#storage.page(after, limit);
    const heads = page.map(({ report, ...head }) => ({ ...head, listed: report <= listed }));
    return { ok: true, view: this.#view(), heads };
  }

  /** Leaves from index `from`, before index `to`, cut to what one call carries. */
  async leaves(identity: HeadLogIdentity, from: number, to: number): Promise<LeavesOutcome> {
    const refused = await this.#prepare(identity);
    if (refused !== null) return refused;
    const leaves: Uint8Array[] = [];
    let bytes = 0;
    for (const leaf of this.#storage.leaves(from, Math.min(to, this.#size))) {
      bytes += leaf.length;
      if (leaves.length > 0 && bytes > MAX_LEAF_BYTES) break;
      leaves.push(leaf);
    }
    return { ok: true, from, leaves, view: this.#view() };
  }

  /** The bytes of a tile or bundle, as wide as its path says; null where the log has none so wide. */
  async tile(identity: HeadLogIdentity, tile: TileRef): Promise<BytesOutcome> {
    const refused = await this.#prepare(identity);
    return refused ?? { ok: true, bytes: tileBytes(this.#tree, this.#leaves, this.#size, tile) };
  }

  /** Path of the leaf at an index, from 0, in the tree of a size: the head's by default. */
  async inclusion(identity: HeadLogIdentity, index: number, size: number | null): Promise<ProofOutcome> {
    const refused = await this.#prepare(identity);
    if (refused !== null) return refused;
    const of = size ?? this.#size;
    const paths = of > this.#size ? [] : inclusionPaths(nativeCrypto, this.#tree, [index + 1], of);
    return { ok: true, size: of, path: paths[0] ?? null, view: this.#view() };
  }

  /** Path between two sizes, the second the head's by default. */
  async consistency(identity: HeadLogIdentity, from: number, to: number | null): Promise<ProofOutcome> {
    const refused = await this.#prepare(identity);
    if (refused !== null) return refused;
    const size = to ?? this.#size;
    const inOrder = from <= size && size <= this.#size;
    const path = inOrder ? consistencyPath(nativeCrypto, this.#tree, from, size) : null;
    return { ok: true, size, path, view: this.#view() };
  }

  /** Lists, signs, mirrors and reports. Nothing may be thrown from here. */
  override async alarm(): Promise<void> {
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
    if (this.#storage.stopped() !== null) return;
    this.#failures = done ? 0 : this.#failures + 1;
    const retryAt = Date.now() + Math.min(MAX_BACKOFF_MS, 1000 * 2 ** Math.min(this.#failures, 6));
    await this.#schedule(done ? null : retryAt);
  }

  readonly #leaves = (first: number, count: number) => [
    ...this.#storage.leaves(first - 1, first - 1 + count),
  ];

  /** Whether nothing is left to try again. */
  async #run(open: OpenHeadLog): Promise<boolean> {
    const news = await this.#start(open.identity, true);
    await open.mirror.compareOnce();
    if (this.#storage.stopped() !== null) return true;
    const signers = await this.#keys.signers(open.identity.owner, this.#storage.state()?.key ?? "");
    this.#list(open, news, signers);
    await open.mirror.run();
    const state = this.#storage.state();
    if (state === null || state.size === 0) return true;
    const mirrored = this.#storage.progress().mirroredSize >= state.size;
    if (open.identity.owner === SERVICE) return mirrored;
    const reported = await open.reporter.report({
      logId: this.#storage.registryId() ?? "",
      name: open.origin,
      generation: 0,
      size: state.size,
      root: toHex(this.#edge(state).root()),
      epoch: state.epoch,
    });
    return mirrored && reported;
  }

  /** One batch; then memory takes over what it changed. */
  #list(open: OpenHeadLog, news: RegistryNews | null, signers: readonly [Signer, ...Signer[]]): void {
    const written = this.#storage.transaction(() =>
      listHeads({
        crypto: nativeCrypto,
        storage: this.#storage,
        tree: this.#tree,
        origin: open.origin,
        size: this.#size,
        reports: this.#reports,
        nowMs: Date.now(),
        signers,
        epoch: this.#keys.current().epoch,
        records: open.identity.owner === SERVICE ? null : (news?.records ?? []),
      }),
    );
    if (written === null) return;
    this.#tree.adopt(written.size, written.partial);
    this.#size = written.size;
  }

  #bind(identity: HeadLogIdentity): OpenHeadLog {
    const { host, owner } = identity;
    if (this.#open !== null) {
      const same = this.#open.identity.host === host && this.#open.identity.owner === owner;
      if (!same) throw new RunsealError("wrong-log", "the request names another log of heads");
      return this.#open;
    }
    if (this.ctx.id.name !== undefined && this.ctx.id.name !== owner) {
      throw new RunsealError("wrong-log", "the request names another log of heads");
    }
    this.#storage.setIdentity(JSON.stringify({ host, owner }));
    const origin = headLogOrigin(identity);
    const service = { host, owner: SERVICE };
    this.#open = {
      identity: { host, owner },
      origin,
      mirror: new Mirror({
        crypto: nativeCrypto,
        tree: this.#tree,
        leaves: this.#leaves,
        bucket: this.env.MIRROR,
        prefix: headLogPrefix(identity),
        origin,
        head: () => this.#storage.state(),
        progress: () => this.#storage.progress(),
        progressed: (change) => this.#storage.setProgress({ ...this.#storage.progress(), ...change }),
        stopped: () => this.#storage.stopped() !== null,
        stop: (detail) =>
          this.#storage.raiseAlarm({ name: "stopped", logId: null, detail, atMs: Date.now() }),
      }),
      reporter: new HeadReporter(nativeCrypto, this.#tree, (report) =>
        this.env.HEAD_LOG.getByName(SERVICE).report(service, report),
      ),
    };
    return this.#open;
  }

  /** Whatever must hold before anything is answered: identity, key, first head, a mirror that agrees. */
  async #prepare(identity: HeadLogIdentity): Promise<Unavailable | null> {
    const open = this.#bind(identity);
    try {
      if (!this.#started) await this.#start(identity, false);
    } catch {
      return unavailable("registry-unavailable", "the key of the log of heads could not be read");
    }
    try {
      if (this.#storage.stopped() === null) await open.mirror.compareOnce();
    } catch {
      return unavailable("mirror-unavailable", "the mirrored head could not be read", 2);
    }
    const stopped = this.#storage.stopped();
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
        news = await readRegistry(this.env, owner);
        this.#storage.setRegistryId(news.registryId);
      } catch (error) {
        // The last key goes on signing: a registry that is away must not make heads lag.
        if (this.#storage.logKey() === null) throw error;
      }
    }
    await this.#keys.ensure(owner, owner === SERVICE ? 0 : (news?.epoch ?? null));
    if (owner === SERVICE && this.#storage.registryId() === null) {
      const vkey = formatVkey(logKey(nativeCrypto, host, this.#keys.current().signer.publicKey));
      this.#storage.setRegistryId(toHex(nativeCrypto.sha256(utf8(vkey))));
    }
    this.#createHead(headLogOrigin({ host, owner }));
    this.#started = true;
    return news;
  }

  #createHead(origin: string): void {
    if (this.#storage.state() !== null) return;
    const { epoch, signer } = this.#keys.current();
    const edge = new RightEdge(nativeCrypto).toBytes();
    const empty = { origin, size: 0, root: EMPTY_ROOT };
    const checkpoint = signCheckpoint(nativeCrypto, origin, [signer], empty);
    const counts = {
      size: 0,
      batch: 0,
      time: 0n,
      recordEpoch: -1,
      listedReport: 0,
      signedAtMs: 0,
      fullAtMs: 0,
    };
    const key = toHex(signer.publicKey);
    this.#storage.setState({ ...counts, edge, checkpoint, key, epoch, intervalMs: FIRST_PAUSE_MS });
  }

  /** Takes over from storage everything that memory holds of the log. */
  #reload(): void {
    this.#size = this.#storage.state()?.size ?? 0;
    this.#reports = this.#storage.lastReport();
    const first = Math.floor(this.#size / TILE_WIDTH) * TILE_WIDTH;
    const partial = [...this.#storage.leaves(first, this.#size)].map((leaf) => leafHash(nativeCrypto, leaf));
    this.#tree.load(this.#size, partial);
  }

  #edge(state: HeadLogState): RightEdge {
    return RightEdge.fromBytes(nativeCrypto, state.edge);
  }

  /** Arms the alarm for the next batch, or for another attempt at `at`; never later than it is armed already. */
  async #schedule(at: number | null = null): Promise<void> {
    const state = this.#storage.state();
    const cadence = state ?? { signedAtMs: 0, fullAtMs: 0, intervalMs: FIRST_PAUSE_MS };
    const knows = { news: this.#reports > (state?.listedReport ?? 0), heads: this.#reports > 0 };
    const next = nextBatchAt(cadence, Date.now(), knows);
    const target = at ?? next;
    if (target === null || (this.#alarmAt !== null && this.#alarmAt <= target)) return;
    this.#alarmAt = target;
    await this.ctx.storage.setAlarm(target);
  }

  #view(): HeadLogView {
    const state = this.#storage.state();
    const { origin } = this.#open ?? { origin: "" };
    if (state === null) throw new RunsealError("storage-inconsistent", "the log of heads has no head");
    return {
      origin,
      registryId: this.#storage.registryId() ?? "",
      size: state.size,
      root: toHex(this.#edge(state).root()),
      checkpoint: state.checkpoint,
      key: state.key,
      batch: state.batch,
      signedAtMs: state.signedAtMs === 0 ? null : state.signedAtMs,
      fullAtMs: state.fullAtMs === 0 ? null : state.fullAtMs,
      mirroredSize: this.#storage.progress().mirroredSize,
      pending: this.#storage.countAfter(state.listedReport),
      alarms: this.#storage.alarms(),
    };
  }
}
