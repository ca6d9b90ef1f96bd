/**
 * What the vectors are made of: bytes from labels, so that every input can be made again from its text.
 *
 * @module
 */
import { toHex } from "../../shared/bytes.ts";
import type { Leaf } from "../../shared/entry/leaf.ts";
import { bytesOf } from "../shared/verify/test-tenant.ts";

/** Hex of `bytesOf`: SHA-256(label + "/0") || SHA-256(label + "/1") || ..., cut to that length. */
export function hexOf(label: string, length: number): string {
  return toHex(bytesOf(label, length));
}

const hexMap = (fields: ReadonlyMap<string, Uint8Array>) =>
  Object.fromEntries([...fields].map(([name, commitment]) => [name, toHex(commitment)]));

/** A leaf's items by name; bytes in hex, integers that a double may not hold as decimal strings. */
export function leafJson(leaf: Leaf): Record<string, unknown> {
  const { actor, authorization, outcome, client } = leaf;
  return {
    log_id: toHex(leaf.logId),
    seq: leaf.seq,
    prev: toHex(leaf.prev),
    recorded_at: String(leaf.recordedAt),
    occurred_at: leaf.occurredAt === null ? null : String(leaf.occurredAt),
    id: leaf.id,
    kind: leaf.kind,
    session: leaf.session,
    run: leaf.run,
    step: leaf.step,
    call: leaf.call,
    actor: actor === null ? null : [actor.type, actor.id, actor.codeHash === null ? null : toHex(actor.codeHash)],
    submitter: [toHex(leaf.submitter.credential), leaf.submitter.reporter],
    action: hexMap(leaf.action),
    authorization: authorization === null ? null : [authorization.tag, hexMap(authorization.fields)],
    outcome: outcome === null ? null : [outcome.tag, hexMap(outcome.fields)],
    client: client === null ? null : [toHex(client.key), toHex(client.signature)],
    epoch: leaf.epoch,
    key: toHex(leaf.key),
  };
}
