import { env } from "cloudflare:workers";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import type { TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import { newTenant, TestLog } from "./support.ts";

let tenant: TestTenant;
let log: TestLog;
beforeAll(async () => {
  tenant = await newTenant();
  log = new TestLog(tenant, "text");
});

/** What a string literal of SQL, of JSON or of JSON5 has its own use for. */
const AWKWARD = [
  "'",
  '"',
  "\\",
  "\\'",
  '\\"',
  "\\\\",
  "\\".repeat(31),
  `${"\\".repeat(30)}'`,
  `${"\\".repeat(31)}"`,
  "''",
  "\\u0000",
  "\\x41",
  "\\\n",
  "\\\u2028",
  "\u0000",
  "\u0001",
  "\b\t\n\v\f\r",
  "\u007f",
  "\u0085",
  "\u00a0",
  "\u2028",
  "\u2029",
  "\ufeff",
  "\ufffe",
  "\uffff",
  "\ud7ff\ue000",
  "\u{10000}",
  "😀",
  "\u{10ffff}",
  "//",
  "/*",
  "*/",
  "],[",
  "?1",
  "null",
];

const Text = fc.string({
  unit: fc.oneof(fc.constantFrom(...AWKWARD), fc.string({ unit: "binary", minLength: 1, maxLength: 3 })),
  maxLength: 8,
});

interface Sent {
  readonly tool: string;
  readonly args: Record<string, unknown>;
  /** Whether the request escapes what is not ASCII, and apostrophes. */
  readonly escaped: boolean;
}

const Entry: fc.Arbitrary<Sent> = fc.record({
  tool: Text,
  args: fc.dictionary(Text, fc.oneof(Text, fc.array(Text, { maxLength: 3 }), fc.constant(null)), {
    maxKeys: 3,
    noNullPrototype: true,
  }),
  escaped: fc.boolean(),
});

function bodyOf({ tool, args, escaped }: Sent): string {
  const text = JSON.stringify({ kind: "tool.call.started", run: "r", call: "c", action: { tool, args } });
  if (!escaped) return text;
  return text.replaceAll(
    /['\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

interface Read {
  readonly seq: number;
  readonly action: { readonly tool: string; readonly args: Record<string, unknown> };
}

/** D1's own columns of the entries after one. */
async function columnsAfter(seq: number): Promise<{ tool: string; content: string }[]> {
  const { results } = await env.DB.prepare(
    `SELECT e.tool, e.content FROM logs l JOIN entries e ON e.log = l.log
     WHERE l.tenant = ? AND l.name = 'text' AND e.seq > ? ORDER BY e.seq`,
  )
    .bind(tenant.id, seq)
    .all<{ tool: string; content: string }>();
  return results;
}

/** Appends the entries, has them copied to D1, and compares what comes back. */
async function roundTrip(sent: readonly Sent[]): Promise<void> {
  const answer = await call(tenant.key, "POST", `${log.path}/entries`, `[${sent.map(bodyOf).join(",")}]`);
  expect(answer.status, answer.text).toBe(201);
  const [first] = (answer.body as unknown as { results: { seq: number }[] }).results;
  const from = first?.seq ?? 0;
  const page = await log.get(`/entries?from=${from}&limit=1000`);
  const read = page.body.entries as unknown as Read[];
  expect(read.map(({ action }) => action)).toEqual(sent.map(({ tool, args }) => ({ tool, args })));
  const columns = await columnsAfter(from - 1);
  expect(columns.map(({ tool }) => tool)).toEqual(sent.map(({ tool }) => tool));
  for (const [i, { content }] of columns.entries()) {
    const { action } = JSON.parse(content) as { action: unknown };
    expect(action).toEqual({ tool: sent[i]?.tool, args: sent[i]?.args });
  }
  const named = sent[0]?.tool ?? "";
  const found = await log.get(`/entries?from=${from}&tool=${encodeURIComponent(named)}`);
  const places = sent.flatMap(({ tool }, i) => (tool === named ? [from + i] : []));
  expect([found.status, (found.body.entries as unknown as Read[]).map(({ seq }) => seq)]).toEqual([
    200,
    places,
  ]);
}

describe("a text in D1 is the one that was sent", () => {
  it("whatever characters it has, as a tool, a key or a value", async () => {
    await fc.assert(fc.asyncProperty(fc.array(Entry, { minLength: 1, maxLength: 20 }), roundTrip), {
      numRuns: 30,
    });
    const { body } = await log.get("/verify");
    expect(body).toMatchObject({ verdict: "intact" });
    await log.check();
  });

  // JSON escapes some of them, so that a row has up to twice as many: beyond 300,000 its content is bound beside the rows.
  it.each([140_000, 160_000])("where it has %i characters, whatever they are", async (length) => {
    const texts = ["\\", "'", '"', "\\'", '\\"', "\u2028", "😀"].map((unit) =>
      unit.repeat(length).slice(0, length),
    );
    await roundTrip(
      texts.map((text) => ({
        tool: `t'${text.slice(0, 10)}`,
        args: { [text.slice(0, 20)]: text },
        escaped: false,
      })),
    );
  });
});
