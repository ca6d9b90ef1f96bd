/**
 * Entries as a runtime sends them: a policy decision, a call and its result, about 500 bytes each.
 *
 * @module
 */
import { randomBytes } from "node:crypto";
import { uuidv7 } from "../shared/ids.ts";

/** `count` entries as JSON texts, their names under the prefix. */
export function toolCallEntries(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => {
    const call = `${prefix}-c${Math.floor(i / 3)}`;
    const common = {
      // Time-ordered, as the SDK mints them.
      id: uuidv7(Date.now(), randomBytes(16)),
      run: `${prefix}-run`,
      step: `s${Math.floor(i / 3)}`,
      call,
      occurred_at: "2026-11-01T12:00:00.123456Z",
    };
    const args = {
      path: `/srv/reports/2026/${prefix}/${i}.md`,
      encoding: "utf-8",
      range: { from: i, to: i + 400 },
    };
    if (i % 3 === 0) {
      return JSON.stringify({
        ...common,
        kind: "policy.evaluated",
        action: {
          tool: "read_file",
          args,
          policy_id: "default/v1",
          decision: { outcome: "allow", reason: "reading is allowed" },
        },
      });
    }
    if (i % 3 === 1)
      return JSON.stringify({ ...common, kind: "tool.call.started", action: { tool: "read_file", args } });
    return JSON.stringify({
      ...common,
      kind: "tool.call.completed",
      action: { tool: "read_file", tool_call_id: `toolu_${i}` },
      outcome: {
        status: "success",
        result: {
          text: `Report ${i}: the figures of the third quarter are in line with the plan.`.repeat(2),
        },
      },
    });
  });
}
