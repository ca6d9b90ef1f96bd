/**
 * Checks a head that somebody keeps elsewhere against the log, and has the tenant's log of heads keep it as the log's
 * last anchor (docs/anchoring.md).
 *
 * @module
 */
import type { HeadLog } from "../../durable-objects/head-log/head-log.ts";
import type { HeadLogIdentity } from "../../durable-objects/head-log/types.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { fromHex, toHex } from "../../shared/bytes.ts";
import { formatOrigin, tenantOrigin } from "../../shared/entry/log-id.ts";
import { verifyConsistency } from "../../shared/merkle/verify.ts";
import { parseCheckpoint } from "../../shared/note/checkpoint.ts";
import type { RegistryChain } from "../../shared/registry/chain.ts";
import { ROLES } from "../../shared/registry/record.ts";
import { openHead } from "../../shared/verify/checkpoint.ts";
import type { Env } from "../env.ts";
import type { Caller } from "../http/auth.ts";
import { hashesOf } from "../http/hashes.ts";
import { Problem } from "../http/problem.ts";
import type { OpenLog } from "./open-log.ts";
import { refusal } from "./open-log.ts";
import { logIdOf } from "./read.ts";
import { registryChain } from "./registry.ts";
import { appendSystemEntry } from "./system-log.ts";

/** Why a head does not become an anchor. */
export type AnchorRejection =
  | "malformed"
  | "empty"
  | "other-log"
  | "bad-signature"
  | "ahead"
  | "inconsistent";

export type AnchorResult =
  | {
      readonly result: "advanced" | "unchanged";
      readonly logId: string;
      readonly size: number;
      readonly root: string;
    }
  | { readonly result: "rejected"; readonly reason: AnchorRejection };

export interface KeptElsewhere {
  /** A signed note. */
  readonly checkpoint: string;
  readonly where: string;
  readonly receipt: string | null;
}

/** A log that can be anchored: a principal's, or the tenant's log of heads. */
interface AnchorableLog {
  readonly logId: string;
  readonly origin: string;
  readonly role: typeof ROLES.audit | typeof ROLES.log;
  /** The head, and the consistency path between two sizes, null where they are out of range. Throw problems. */
  readonly head: () => Promise<{ readonly size: number; readonly root: string }>;
  readonly path: (from: number, to: number) => Promise<Uint8Array | null>;
}

/** A principal's log. */
export function principalLog(log: OpenLog): AnchorableLog {
  return {
    logId: logIdOf(log),
    origin: formatOrigin(log.identity),
    role: ROLES.audit,
    head: async () => {
      const outcome = await log.stub.head(log.identity, log.epoch);
      if (!outcome.ok) throw refusal(outcome);
      return outcome.head;
    },
    path: async (from, to) => {
      const outcome = await log.stub.consistency(log.identity, log.epoch, from, to);
      if (!outcome.ok) throw refusal(outcome);
      return outcome.path;
    },
  };
}

/** The tenant's log of heads. */
export function tenantLog(
  caller: Caller,
  stub: DurableObjectStub<HeadLog>,
  identity: HeadLogIdentity,
): AnchorableLog {
  return {
    logId: caller.tenant.registryId,
    origin: tenantOrigin(caller.tenant.host, caller.tenant.id),
    role: ROLES.log,
    head: async () => {
      const outcome = await stub.view(identity);
      if (!outcome.ok) throw refusal(outcome);
      return outcome.view;
    },
    path: async (from, to) => {
      const outcome = await stub.consistency(identity, from, to);
      if (!outcome.ok) throw refusal(outcome);
      return outcome.path;
    },
  };
}

/** A head whose signature holds. */
interface SignedHead {
  readonly size: number;
  readonly root: Uint8Array;
  /** Whether a signer holds the role still: who has a retired key can sign anything. */
  readonly current: boolean;
}

function openKept(registry: RegistryChain, log: AnchorableLog, note: string): SignedHead | AnchorRejection {
  const opened = openHead(nativeCrypto, log.origin, note, registry.ever(log.role));
  if (!opened.ok) {
    if (opened.code === "malformed-entry") return "malformed";
    return opened.code === "log-id-mismatch" ? "other-log" : "bad-signature";
  }
  const { size, root } = parseCheckpoint(note).checkpoint;
  if (size === 0) return "empty";
  return { size, root, current: opened.keys.some((key) => registry.holds(log.role, key, registry.epoch)) };
}

/** Whether the head is one that the log has had. */
async function isOwn(log: AnchorableLog, kept: SignedHead): Promise<true | "ahead" | "inconsistent"> {
  const head = await log.head();
  if (kept.size > head.size) return "ahead";
  const path = await log.path(kept.size, head.size);
  if (path === null) return "ahead";
  const proof = hashesOf(path).map((hash) => fromHex(hash, 32));
  const root = fromHex(head.root, 32);
  return verifyConsistency(nativeCrypto, kept.size, head.size, proof, kept.root, root).ok || "inconsistent";
}

const MAX_ATTEMPTS = 4;

/** Takes an anchor, or says why not. Throws problems where a part of the service is away. */
export async function takeAnchor(
  env: Env,
  caller: Caller,
  heads: { readonly stub: DurableObjectStub<HeadLog>; readonly identity: HeadLogIdentity },
  log: AnchorableLog,
  kept: KeptElsewhere,
): Promise<AnchorResult> {
  const registry = await registryChain(env, caller.tenant.id, { maxAgeMs: 0 });
  const signed = openKept(registry, log, kept.checkpoint);
  if (typeof signed === "string") return { result: "rejected", reason: signed };
  const own = await isOwn(log, signed);
  const { stub, identity } = heads;
  if (own !== true) {
    // A key of today has signed two histories, or the log was rewound: that must not depend on who reads this answer.
    if (signed.current) {
      const detail = `a head of ${signed.size} entries that is kept elsewhere, with a good signature, is ${own} of this log`;
      await stub.contradicted(identity, log.logId, detail);
    }
    return { result: "rejected", reason: own };
  }
  const { size } = signed;
  const root = toHex(signed.root);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const from = await stub.anchoredSize(identity, log.logId);
    const path = from === 0 ? new Uint8Array() : await log.path(Math.min(from, size), Math.max(from, size));
    // The last anchor is larger than the log: it was rewound, and this head is of before.
    if (path === null) return { result: "rejected", reason: "inconsistent" };
    // Recorded before it counts; the same act again is the same entry.
    if (size > from) await record(env, caller, log, kept, size);
    const outcome = await stub.anchor(identity, {
      logId: log.logId,
      size,
      root,
      ...kept,
      by: caller.key.id,
      from,
      path,
    });
    if (outcome.status === "rejected") return { result: "rejected", reason: "inconsistent" };
    if (outcome.status !== "behind") return { result: outcome.status, logId: log.logId, size, root };
  }
  throw new Problem("unavailable", {
    detail: "other anchors of this log came at the same time",
    retryAfter: 1,
  });
}

async function record(
  env: Env,
  caller: Caller,
  log: AnchorableLog,
  kept: KeptElsewhere,
  size: number,
): Promise<void> {
  const sha256 = (text: string) => toHex(nativeCrypto.sha256(new TextEncoder().encode(text)));
  await appendSystemEntry(env, caller.tenant, {
    id: `log.anchored.${log.logId}.${size}`,
    kind: "log.anchored",
    action: {
      log_id: log.logId,
      size,
      checkpoint_hash: sha256(kept.checkpoint),
      where: kept.where,
      ...(kept.receipt === null ? {} : { receipt_hash: sha256(kept.receipt) }),
      by: caller.key.id,
    },
  });
}
