/**
 * The floor that ingest is measured against: a Worker that does the naive job with the same body. It parses, checks
 * the same schema, hashes each entry once and stores the batch in one transaction. No order, no tree, no signature, no
 * strictness, no content apart.
 *
 * @module
 */

import { DurableObject } from "cloudflare:workers";
import { createHash } from "node:crypto";
import { z } from "zod";
import { EntryIn } from "../../shared/api/schemas.ts";

interface FloorEnv {
  readonly FLOOR: DurableObjectNamespace<FloorLog>;
}

interface Row {
  readonly id: string;
  readonly hash: string;
  readonly text: string;
}

export class FloorLog extends DurableObject<FloorEnv> {
  readonly #waiting: { readonly rows: readonly Row[]; readonly resolve: (stored: number) => void }[] = [];

  constructor(ctx: DurableObjectState, env: FloorEnv) {
    super(ctx, env);
    ctx.storage.sql.exec(
      "CREATE TABLE IF NOT EXISTS rows (seq INTEGER PRIMARY KEY, id TEXT, hash TEXT, text TEXT)",
    );
  }

  /** The same, with all that is being delivered in one transaction. */
  appendGrouped(rows: readonly Row[]): Promise<number> {
    return new Promise((resolve) => {
      this.#waiting.push({ rows, resolve });
      if (this.#waiting.length > 1) return;
      setTimeout(() => {
        const group = this.#waiting.splice(0);
        this.append(group.flatMap((one) => one.rows));
        for (const one of group) one.resolve(one.rows.length);
      }, 0);
    });
  }

  append(rows: readonly Row[]): number {
    this.ctx.storage.transactionSync(() => {
      for (const { id, hash, text } of rows) {
        this.ctx.storage.sql.exec("INSERT INTO rows (id, hash, text) VALUES (?, ?, ?)", id, hash, text);
      }
    });
    return rows.length;
  }
}

const Batch = z.union([z.array(EntryIn), EntryIn.transform((entry) => [entry])]);

export default {
  async fetch(request, env) {
    const entries = Batch.parse(JSON.parse(await request.text()));
    const rows = entries.map((entry): Row => {
      const text = JSON.stringify(entry);
      return { id: entry.id ?? "", hash: createHash("sha256").update(text).digest("hex"), text };
    });
    const { pathname, searchParams } = new URL(request.url);
    const log = env.FLOOR.getByName(pathname);
    const stored = searchParams.has("grouped") ? await log.appendGrouped(rows) : await log.append(rows);
    return Response.json({ stored }, { status: 201 });
  },
} satisfies ExportedHandler<FloorEnv>;
