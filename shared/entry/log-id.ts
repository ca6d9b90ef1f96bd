/**
 * The identity of a log: its origin, and the log id that a verifier recomputes from it.
 *
 * @module
 */
import { fromHex, toHex } from "../bytes.ts";
import { encodeCbor } from "../cbor/encode.ts";
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";

export const LOG_TAG = "runseal.log.v1";

/** A principal's log, as its origin names it. */
export interface LogName {
  readonly host: string;
  /** 16 bytes of lower-case hex. */
  readonly tenant: string;
  /** 16 bytes of lower-case hex, never reused. */
  readonly principal: string;
  /** 1 for a new principal; a sealed log's successor counts on. */
  readonly generation: number;
}

const ORIGIN =
  /^([A-Za-z0-9][A-Za-z0-9.:-]{0,252})\/t\/([0-9a-f]{32})\/p\/([0-9a-f]{32})\.([1-9][0-9]{0,8})$/;

/** The origin line and key name of a log: `<host>/t/<tenant>/p/<principal>.<generation>`. */
export function formatOrigin(name: LogName): string {
  return `${name.host}/t/${name.tenant}/p/${name.principal}.${name.generation}`;
}

/** Parts of an origin. Throws `RunsealError("bad-origin")`. */
export function parseOrigin(origin: string): LogName {
  const match = ORIGIN.exec(origin);
  const [, host, tenant, principal, generation] = match ?? [];
  if (host === undefined || tenant === undefined || principal === undefined || generation === undefined) {
    throw new RunsealError(
      "bad-origin",
      "the origin is not of the form host/t/TENANT/p/PRINCIPAL.GENERATION",
    );
  }
  return { host, tenant, principal, generation: Number(generation) };
}

/**
 * SHA-256(dCBOR(["runseal.log.v1", registry_id, principal_id, generation])): 32 bytes.
 *
 * @param registryId 32 bytes: the hash of the tenant's genesis record
 */
export function computeLogId(
  crypto: CryptoPort,
  registryId: Uint8Array,
  principal: string,
  generation: number,
): Uint8Array {
  return crypto.sha256(encodeCbor([LOG_TAG, registryId, fromHex(principal, 16), generation]));
}

/** The part of an R2 key that belongs to one log: every stored object is reached through its tenant. */
export function logPrefix(name: Pick<LogName, "tenant" | "principal" | "generation">): string {
  return `t/${name.tenant}/p/${name.principal}.${name.generation}`;
}

/** The origin that a tenant's genesis record names. */
export function tenantOrigin(host: string, tenant: string): string {
  return `${host}/t/${tenant}`;
}

/** Lower-case hex of 16 random bytes: a tenant or principal id. */
export function newHexId(random16: Uint8Array): string {
  return toHex(random16.subarray(0, 16));
}
