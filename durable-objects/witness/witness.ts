/**
 * A witness for other logs (c2sp.org/tlog-witness): cosigns a head that goes on from the last one that it cosigned.
 * The check and the write are one transaction, without anything awaited between them, and the platform's output gate
 * holds the answer until the write is on disk: two heads of one size are never cosigned, whatever comes at once.
 *
 * @module
 */
import { DurableObject } from "cloudflare:workers";
import { nativeCrypto } from "../../native/crypto.ts";
import { fromHex, toHex } from "../../shared/bytes.ts";
import type { Signer } from "../../shared/crypto/port.ts";
import { RunsealError } from "../../shared/errors.ts";
import { cosign } from "../../shared/note/cosignature.ts";
import { formatVkey, parseVkey, witnessKey } from "../../shared/note/vkey.ts";
import type { AddCheckpoint, WitnessedLog } from "../../shared/note/witness.ts";
import { formatCosignatures, judgeAddCheckpoint, parseAddCheckpoint } from "../../shared/note/witness.ts";
import type { Env } from "../../workers/env.ts";
import type { WrappedKey } from "../managed-keys.ts";
import { createManagedKey, openManagedKey } from "../managed-keys.ts";
import { WitnessedStorage } from "./storage.ts";
import type { AddCheckpointReply, WitnessedLogView } from "./types.ts";
import { WITNESS, witnessName } from "./types.ts";

export class Witness extends DurableObject<Env> {
  readonly #storage: WitnessedStorage;
  #opening: Promise<Signer> | null = null;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#storage = new WitnessedStorage(ctx.storage);
  }

  /** The witness' key in text form. */
  async vkey(): Promise<string> {
    const { publicKey } = await this.#signer();
    return formatVkey(witnessKey(nativeCrypto, witnessName(this.env.LOG_HOST), publicKey));
  }

  /** Watches a log under these keys from now on; with none, no longer. What was cosigned of it is never forgotten. */
  setLog(origin: string, vkeys: readonly string[]): WitnessedLogView {
    this.#storage.setVkeys(origin, vkeys);
    return { origin, vkeys, latest: this.#storage.latest(origin) };
  }

  logs(): WitnessedLogView[] {
    return this.#storage.logs();
  }

  /** Answers a request of the protocol. */
  async addCheckpoint(body: Uint8Array): Promise<AddCheckpointReply> {
    let request: AddCheckpoint;
    try {
      request = parseAddCheckpoint(body);
    } catch (error) {
      if (!(error instanceof RunsealError)) throw error;
      return { status: 400 };
    }
    // Before the transaction: nothing is awaited from there to the signature.
    const signer = await this.#signer();
    const nowMs = Date.now();
    const judged = this.#judgeAndKeep(request, nowMs);
    if (judged.status !== 200) return judged;
    const seconds = BigInt(Math.floor(nowMs / 1000));
    const name = witnessName(this.env.LOG_HOST);
    return {
      status: 200,
      cosignatures: formatCosignatures([cosign(nativeCrypto, name, signer, judged.text, seconds)]),
    };
  }

  /** Throws an error that the Worker knows as transient where storage takes no write. */
  #judgeAndKeep(request: AddCheckpoint, cosignedAtMs: number): ReturnType<typeof judgeAddCheckpoint> {
    try {
      return this.#storage.transaction(() => {
        const judged = judgeAddCheckpoint(nativeCrypto, request, (origin) => this.#known(origin));
        if (judged.status !== 200) return judged;
        const { origin, size, root } = judged.checkpoint;
        const { checkpoint } = request;
        this.#storage.setLatest(origin, { size, root: toHex(root), checkpoint, cosignedAtMs });
        return judged;
      });
    } catch (error) {
      if (error instanceof RunsealError) throw error;
      throw new Error("a Durable Object's storage took no write");
    }
  }

  #known(origin: string): WitnessedLog | undefined {
    const vkeys = this.#storage.vkeys(origin);
    if (vkeys.length === 0) return undefined;
    const latest = this.#storage.latest(origin);
    return {
      keys: vkeys.map((vkey) => parseVkey(nativeCrypto, vkey)),
      latest: latest === null ? null : { size: latest.size, root: fromHex(latest.root, 32) },
    };
  }

  /** The key, made once and kept wrapped. */
  #signer(): Promise<Signer> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async #open(): Promise<Signer> {
    if (this.#storage.key() === null) {
      const made = await createManagedKey(nativeCrypto, this.env.MASTER_KEY, WITNESS, "witness");
      this.#storage.setKey(JSON.stringify(made.wrapped));
    }
    const wrapped = JSON.parse(this.#storage.key() ?? "") as WrappedKey;
    return openManagedKey(nativeCrypto, this.env.MASTER_KEY, WITNESS, wrapped);
  }
}
