/**
 * The bindings and secrets that the Worker and the Durable Objects receive. Mirrors wrangler.toml.
 *
 * @module
 */
import type { HeadLog } from "../durable-objects/head-log/head-log.ts";
import type { KeyRegistry } from "../durable-objects/key-registry/key-registry.ts";
import type { PrincipalLog } from "../durable-objects/principal-log/principal-log.ts";
import type { TenantDirectory } from "../durable-objects/tenant-directory/tenant-directory.ts";

export interface Env {
  readonly PRINCIPAL_LOG: DurableObjectNamespace<PrincipalLog>;
  readonly HEAD_LOG: DurableObjectNamespace<HeadLog>;
  readonly KEY_REGISTRY: DurableObjectNamespace<KeyRegistry>;
  readonly TENANT_DIRECTORY: DurableObjectNamespace<TenantDirectory>;
  readonly DB: D1Database;
  readonly MIRROR: R2Bucket;
  /** Host part of the logs' origins. */
  readonly LOG_HOST: string;
  /** Seconds between a key rotation's publication and its effect; 120 where it is absent. */
  readonly ROTATION_DELAY_SECONDS?: string;
  /** Secret: the operator's bearer token. */
  readonly RUNSEAL_OPERATOR_TOKEN: string;
  /** Secret: 32 bytes of lower-case hex that wrap the managed private keys. */
  readonly MASTER_KEY: string;
}
