import { describe, expect, it } from "vitest";
import { rebuildIndexCommand } from "../../cli/commands/rebuild-index.ts";
import { stubService } from "./stub-service.ts";

const TENANT = "ab".repeat(16);
let refused: number;
const stub = stubService(rebuildIndexCommand, ({ body }) => {
  const { cursor } = JSON.parse(body) as { cursor?: string };
  const first = { done: false, cursor: `${TENANT}.begun`, logs: 2, entries: 9, restored: 0, refused: 0 };
  const last = { done: true, cursor: null, logs: 1, entries: 3, restored: 4, refused };
  return { body: { tenant: TENANT, ...(cursor === undefined ? first : last) } };
});

describe("runseal rebuild-index", () => {
  it("goes on from step to step, and says what came back", async () => {
    refused = 0;
    const { code, out, notes } = await stub.run([], { token: "t" });
    expect([code, out.trim().split("\n")]).toEqual([
      0,
      ["the index holds 3 logs of 1 tenants again", "4 policies and tool specs came back from R2"],
    ]);
    expect(notes).toContain(`2 logs, 9 entries; next --from ${TENANT}.begun`);
    expect(stub.asked).toHaveLength(2);
  });

  it("fails where R2 holds something else in the place of a policy or tool spec", async () => {
    refused = 2;
    const { code, out } = await stub.run([], { token: "t" });
    expect(code).toBe(1);
    expect(out).toContain("2 objects in R2 are not what their key says");
  });
});
