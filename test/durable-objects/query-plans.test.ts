import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { ERASE_ROWS } from "../../durable-objects/content/erase-index.ts";
import { ENTRIES_BY_ID } from "../../durable-objects/principal-log/look-up.ts";

async function planOf(sql: string, bindings: readonly (string | null)[]): Promise<string> {
  const { results } = await env.DB.prepare(`EXPLAIN QUERY PLAN ${sql}`)
    .bind(...bindings)
    .all<{ detail: string }>();
  return results.map(({ detail }) => detail).join("\n");
}

describe("D1 finds the entries of a list by index, however long the log is", () => {
  it("by their ids", async () => {
    expect(await planOf(ENTRIES_BY_ID, ["[]", ""])).toContain("entries_by_id (log=? AND id=?)");
  });

  it("by their places, to erase their content", async () => {
    expect(await planOf(ERASE_ROWS, ["[]", "", null, null])).toContain("PRIMARY KEY (log=? AND seq=?)");
  });
});
