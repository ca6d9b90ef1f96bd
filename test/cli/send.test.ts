import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { sendCommand } from "../../cli/commands/send.ts";
import { stubService } from "./stub-service.ts";

/** As a service whose windows are long over between two requests: what is too large for one never passes. */
let policy = "";
const stub = stubService(sendCommand, ({ body }) => {
  const ids = body.split("\n").map((line) => (JSON.parse(line) as { id: string }).id);
  if (ids.length > 10) {
    const headers = { "retry-after": "0", "ratelimit-policy": policy };
    return { status: 429, headers, body: { title: "Too many entries in this minute" } };
  }
  const results = ids.map((id, index) => ({ index, id, seq: Number(id), hash: "ab", status: "stored" }));
  return { status: 201, body: { results, head: { seq: Number(ids.at(-1)), hash: "ab" } } };
});

const file = join(mkdtempSync(join(tmpdir(), "runseal-send-")), "entries.jsonl");
const ids = Array.from({ length: 25 }, (_, n) => String(n + 1));
writeFileSync(file, ids.map((id) => JSON.stringify({ id, kind: "message.delta" })).join("\n"));

it.each([
  ["entries", '"tenant-entries";q=10;w=60;qu="entries"', [25, 10, 10, 5]],
  ["bytes", '"key-entries";q=90;w=60;qu="entries", "key-bytes";q=200;w=86400;qu="content-bytes"', [25, 5]],
])("sends no more %s at once than a limit takes, in order", async (_what, told, sizes) => {
  policy = told;
  const { code, out } = await stub.run([file], { principal: "p" });
  expect(code).toBe(0);
  const sent = stub.seen.map(({ body }) => body.split("\n").length);
  expect(sent.slice(0, sizes.length)).toEqual(sizes);
  expect(out.split("\n")).toEqual([...ids.map((id) => `${id} ab ${id}`), "head: 25:ab"]);
});
