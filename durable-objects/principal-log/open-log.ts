/**
 * What a log is made of once its identity is known: the consumers of its entries, wired to what the object holds.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { fromHex, toHex } from "../../shared/bytes.ts";
import { computeLogId, formatOrigin, logPrefix } from "../../shared/entry/log-id.ts";
import type { Env } from "../../workers/env.ts";
import type { ArchiveContext } from "../content/archived-entries.ts";
import { ContentKeys } from "../content/content-keys.ts";
import { ContentKeeper } from "../content/keeper.ts";
import { LogReporter } from "../head-log/log-reporter.ts";
import { Mirror } from "../tile-store/mirror-keeper.ts";
import type { TileTree } from "../tile-store/tile-tree.ts";
import type { IndexedHeadContext } from "./indexed-head.ts";
import { checkIndexedHeads, readIndexedHead } from "./indexed-head.ts";
import { DirtyListing } from "./listing.ts";
import { Outbox } from "./outbox.ts";
import type { Recovery } from "./recovery.ts";
import { registryOf } from "./recovery.ts";
import type { LogStorage, Progress, StoredHead } from "./storage.ts";
import type { LogIdentity, Unavailable } from "./types.ts";

/** What a log knows once its identity is. */
export interface OpenLog {
  readonly identity: LogIdentity;
  readonly origin: string;
  readonly logId: Uint8Array;
  /** Where R2 has the log's entries. */
  readonly archive: ArchiveContext;
  readonly mirror: Mirror;
  readonly outbox: Outbox;
  readonly content: ContentKeeper;
  readonly listing: DirtyListing;
  readonly reporter: LogReporter;
}

/** What the object holds, whichever log it is. */
export interface LogParts {
  readonly env: Env;
  readonly durable: DurableObjectStorage;
  readonly storage: LogStorage;
  readonly tree: TileTree;
  readonly recovery: Recovery;
  readonly leaves: (first: number, count: number) => Uint8Array[];
  readonly head: () => StoredHead | null;
  readonly progress: () => Progress;
  readonly progressed: (progress: Partial<Progress>) => void;
  /** Why the log is stopped; null where it runs. */
  readonly stopped: () => Unavailable | null;
  /** Sequence numbers of those entries that the log has. Throws what D1 throws. */
  readonly seqsOf: (ids: readonly string[]) => Promise<ReadonlyMap<string, number>>;
  /** The newest entry whose id the log may have forgotten. */
  readonly forgottenUpTo: () => number;
}

export function openLog(identity: LogIdentity, parts: LogParts): OpenLog {
  const { env, durable, storage, tree, recovery, leaves, head, progress, progressed } = parts;
  const crypto = nativeCrypto;
  const origin = formatOrigin(identity);
  const { registryId, principal, generation } = identity;
  const logId = computeLogId(crypto, fromHex(registryId, 32), principal, generation);
  const [bucket, prefix] = [env.MIRROR, logPrefix(identity)];
  const archive = { crypto, tree, keys: new ContentKeys(durable.sql), bucket, prefix, logId };
  const shared = { storage, tree, archive, head, progress, progressed };
  const outbox = new Outbox({
    ...shared,
    db: env.DB,
    identity,
    logId,
    // Said before anything is filled again: other logs may have lost rows in D1 that nobody looks at.
    fellBack: () => env.TENANT_DIRECTORY.getByName(identity.tenant).startRebuild(),
  });
  const indexed: IndexedHeadContext = {
    crypto,
    tree,
    origin,
    db: env.DB,
    logId: toHex(logId),
    principal,
    registry: () => registryOf(env, identity.tenant),
  };
  return {
    identity,
    origin,
    logId,
    archive,
    mirror: new Mirror({
      ...shared,
      crypto,
      leaves,
      stopped: () => storage.standingAlarm("stopped") !== null,
      prunedSeq: () => storage.prunedSeq,
      stop: (detail, kind, checkpoint) => recovery.stop({ kind, detail, checkpoint }),
      refill: (checkpoint) => recovery.refill(checkpoint),
      indexed: async () => {
        // A log starts while D1 is away; one that was found to lack entries does not go on without them.
        const notes = [recovery.begunFor, await readIndexedHead(indexed).catch(() => null)];
        return (size) => checkIndexedHeads(indexed, notes, size);
      },
      bucket,
      prefix,
      origin,
    }),
    outbox,
    content: new ContentKeeper({
      ...shared,
      durable,
      env,
      identity,
      outbox,
      size: () => head()?.size ?? 0,
      seqsOf: parts.seqsOf,
      forgottenUpTo: parts.forgottenUpTo,
      agrees: () => parts.stopped() === null && !recovery.isRefilling,
    }),
    listing: new DirtyListing(env, identity),
    reporter: new LogReporter(env, tree, identity, logId),
  };
}
