/**
 * The bindings and secrets that the Worker and the Durable Objects receive. Mirrors wrangler.toml.
 *
 * @module
 */
import type { HeadLog } from "../durable-objects/head-log/head-log.ts";
import type { KeyRegistry } from "../durable-objects/key-registry/key-registry.ts";
import type { PrincipalLog } from "../durable-objects/principal-log/principal-log.ts";
import type { RecheckJob } from "../durable-objects/recheck-job/recheck-job.ts";
import type { TenantDirectory } from "../durable-objects/tenant-directory/tenant-directory.ts";
import type { Witness } from "../durable-objects/witness/witness.ts";

export interface Env {
  readonly PRINCIPAL_LOG: DurableObjectNamespace<PrincipalLog>;
  readonly HEAD_LOG: DurableObjectNamespace<HeadLog>;
  readonly KEY_REGISTRY: DurableObjectNamespace<KeyRegistry>;
  readonly TENANT_DIRECTORY: DurableObjectNamespace<TenantDirectory>;
  readonly WITNESS: DurableObjectNamespace<Witness>;
  readonly RECHECK_JOB: DurableObjectNamespace<RecheckJob>;
  readonly DB: D1Database;
  readonly MIRROR: R2Bucket;
  /** Sandboxes for `module` policies, where the runtime holds them to a budget. */
  readonly MODULES?: WorkerLoader;
  /** The same in a process of its own, which can be killed: the embedded server's (cli/serve/sandboxes.ts). */
  readonly MODULE_RUNNER?: Fetcher;
  /** Host part of the logs' origins. */
  readonly LOG_HOST: string;
  /** Seconds between a key rotation's publication and its effect; 120 where it is absent. */
  readonly ROTATION_DELAY_SECONDS?: string;
  /** Witnesses of the service's log: JSON `[{name, url, vkey}...]`. None where it is absent or empty. */
  readonly WITNESSES?: string;
  /** Secret: the operator's bearer token. */
  readonly RUNSEAL_OPERATOR_TOKEN: string;
  /** Secret: 32 bytes of lower-case hex that wrap the managed private keys. */
  readonly MASTER_KEY: string;
}
