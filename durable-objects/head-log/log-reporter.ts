/**
 * A principal's log as it reports to its tenant's log of heads.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex } from "../../shared/bytes.ts";
import type { Env } from "../../workers/env.ts";
import type { StoredHead } from "../principal-log/storage.ts";
import type { LogIdentity } from "../principal-log/types.ts";
import type { TileTree } from "../tile-store/tile-tree.ts";
import { HeadReporter } from "./reporter.ts";

export class LogReporter {
  readonly #identity: LogIdentity;
  readonly #logId: string;
  readonly #reporter: HeadReporter;

  constructor(env: Env, tree: TileTree, identity: LogIdentity, logId: Uint8Array) {
    this.#identity = identity;
    this.#logId = toHex(logId);
    const owner = { host: identity.host, owner: identity.tenant };
    this.#reporter = new HeadReporter(nativeCrypto, tree, (report) =>
      env.HEAD_LOG.getByName(identity.tenant).report(owner, report),
    );
  }

  /** Reports the head as storage holds it. Never throws; false: to be tried again. */
  async report(head: StoredHead | null): Promise<boolean> {
    if (head === null) return true;
    const { name, generation } = this.#identity;
    const { size, epoch, edge } = head;
    return this.#reporter.report({
      logId: this.#logId,
      name,
      generation,
      size,
      root: toHex(edge.root()),
      epoch,
    });
  }
}
