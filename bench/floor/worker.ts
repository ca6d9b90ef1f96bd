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
  constructor(ctx: DurableObjectState, env: FloorEnv) {
    super(ctx, env);
    ctx.storage.sql.exec(
      "CREATE TABLE IF NOT EXISTS rows (seq INTEGER PRIMARY KEY, id TEXT, hash TEXT, text TEXT)",
    );
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

const Batch = z.array(EntryIn);

export default {
  async fetch(request, env) {
    const entries = Batch.parse(JSON.parse(await request.text()));
    const rows = entries.map((entry): Row => {
      const text = JSON.stringify(entry);
      return { id: entry.id ?? "", hash: createHash("sha256").update(text).digest("hex"), text };
    });
    const name = new URL(request.url).pathname;
    return Response.json({ stored: await env.FLOOR.getByName(name).append(rows) }, { status: 201 });
  },
} satisfies ExportedHandler<FloorEnv>;
