import { beforeAll, describe, expect, it } from "vitest";
import type { TestTenant } from "../workers/support.ts";
import { newTenant, TestLog } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
});

const call = (run: string | undefined, args: Record<string, unknown>, tool = "t") => ({
  kind: "tool.call.started",
  ...(run === undefined ? {} : { run }),
  action: { tool, args },
});

describe("the spans of runs in D1", () => {
  it("are of the entries that name a run, and of no value that looks like one", async () => {
    const log = new TestLog(tenant, "spans");
    await log.append([
      call(undefined, { q: 1, r: "none" }),
      call("one", { q: 1, r: "none" }),
      call("two", {}, 'x","r":"none","y":"'),
      call(undefined, { a: ',"r":"none"' }, ',"r":"none"'),
      call("one", {}),
    ]);
    await log.append([call("two", {}), call("one", { r: "two" })]);
    const { body } = await log.get("/runs");
    expect(body.runs).toEqual([
      { run: "one", first_seq: 2, last_seq: 7, entries: 3 },
      { run: "two", first_seq: 3, last_seq: 6, entries: 2 },
    ]);
  });
});
