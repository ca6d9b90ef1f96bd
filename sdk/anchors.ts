/**
 * Heads that are kept elsewhere, from a client's side (docs/anchoring.md): to say that one is, and to see what is.
 *
 *     const anchors = new Anchors(client);
 *     await anchors.add({ principal: "agent-7", checkpoint, where: "the auditor", receipt });
 *     for await (const log of anchors.list()) if (log.lag_entries > 10_000) warn(log);
 *
 * @module
 */
import type { z } from "zod";
import type { AnchoredLogOut, AnchorsPage, AnchorTaken } from "../shared/api/anchors.ts";
import { ProblemError, type RunsealClient } from "./client.ts";

export type AnchoredLog = z.infer<typeof AnchoredLogOut>;

/** A head that is kept elsewhere. */
export interface Anchor {
  /** Whose log it is a head of; absent for the tenant's log of heads. */
  readonly principal?: string | undefined;
  /** The kept head: a C2SP checkpoint, as it was kept. */
  readonly checkpoint: string;
  /** Where it is kept, in words. */
  readonly where: string;
  /** What was got for it there; the service does not look into it. */
  readonly receipt?: string | undefined;
}

/** What became of it. A rejected one is no head of the log, and leaves the last anchor as it is. */
export type AnchorOutcome =
  | z.infer<typeof AnchorTaken>
  | { readonly result: "rejected"; readonly reason: string; readonly detail: string };

export class Anchors {
  readonly #client: RunsealClient;

  constructor(client: RunsealClient) {
    this.#client = client;
  }

  /**
   * Says that a head is kept elsewhere. The same again changes nothing.
   *
   * @throws `ProblemError` for everything but those outcomes: a log that is not there, a key without the scope
   */
  async add({ principal, checkpoint, where, receipt }: Anchor): Promise<AnchorOutcome> {
    const log = principal === undefined ? { log: "tenant" } : { principal };
    try {
      return await this.#client.json("POST", "/v1/anchors", {
        ...log,
        checkpoint,
        where,
        ...(receipt === undefined ? {} : { receipt }),
      });
    } catch (error) {
      const isRejection = error instanceof ProblemError && error.type.endsWith(":anchor-rejected");
      if (!isRejection) throw error;
      const { reason, detail } = error.problem;
      return { result: "rejected", reason: String(reason), detail: String(detail) };
    }
  }

  /** Each log with its last anchor: the tenant's log of heads first, then all that the key may use, by log id. */
  async *list(): AsyncGenerator<AnchoredLog> {
    let cursor: string | null = null;
    do {
      const query = cursor === null ? "" : `?cursor=${encodeURIComponent(cursor)}`;
      const page: z.infer<typeof AnchorsPage> = await this.#client.json("GET", `/v1/anchors${query}`);
      if (cursor === null) yield page.log;
      yield* page.logs;
      cursor = page.next_cursor;
    } while (cursor !== null);
  }
}
