/** What a source holds and the log would refuse: repaired, marked, and said. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assistant, call, callsOf, chat, expectSound, ofKind, runOf, seen, tool } from "./support.ts";

describe("what the log would refuse", () => {
  it("an unpaired surrogate is repaired, and the entry says where", async () => {
    const run = await runOf(
      "openai-chat",
      '[{"role":"user","content":"half \\ud83d"},{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"x","arguments":{"a":["\\udc00"]}}}]}]',
    );
    expectSound(run);
    expect(seen(run)[0]?.action).toMatchObject({
      goal: "half \ufffd",
      extra: { lossy: [{ at: "/action/goal", reason: "json-surrogate" }] },
    });
    expect(ofKind(run, "tool.call.started")[0]?.action).toMatchObject({
      args: { a: ["\ufffd"] },
      extra: { lossy: [{ at: "/action/args/a/0", reason: "json-surrogate" }] },
    });
    expect(ofKind(run, "model.completed")[0]?.action.extra.lossy).toBeUndefined();
    expect(run.notes).toContain("2 values could not be kept exactly (extra.lossy)");
  });

  it("bad UTF-8 is repaired in the string that holds it", async () => {
    const bytes = new TextEncoder().encode(
      '[{"role":"user","content":"X"},{"role":"user","content":"fine ü"}]',
    );
    bytes[bytes.indexOf(0x58)] = 0xff;
    const run = await runOf("openai-chat", bytes);
    expectSound(run);
    expect(
      ofKind(run, "message.completed").map(({ action }) => [action.message.content, action.extra]),
    ).toEqual([
      ["\ufffd", { lossy: [{ at: "/action/message/content", reason: "json-surrogate" }] }],
      ["fine ü", undefined],
    ]);
  });

  it("NaN, 1e400, equal keys and deep nesting are marked", async () => {
    const deep = `${"[".repeat(400)}${"]".repeat(400)}`;
    const run = await runOf(
      "openai-chat",
      `[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"x","arguments":{"n":NaN,"big":1e400,"k":{"a":1,"a":2},"deep":${deep}}}}]}]`,
    );
    expectSound(run);
    const { args, extra } = ofKind(run, "tool.call.started")[0]!.action;
    expect(args).toMatchObject({
      n: { "runseal.lossy": "json-number", head: "NaN" },
      big: { "runseal.lossy": "json-number", head: "1e400" },
      k: { a: 2 },
    });
    expect(extra.lossy.map((one: { at: string; reason: string }) => `${one.at} ${one.reason}`)).toEqual(
      expect.arrayContaining([
        "/action/args/n json-number",
        "/action/args/big json-number",
        "/action/args/k json-duplicate-key",
      ]),
    );
    expect(JSON.stringify(args.deep)).toContain("json-depth");
  });

  it("nesting that the log takes in a document, but not inside of an entry, is marked, or stays text", async () => {
    const nested = (levels: number): string => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
    const run = await runOf(
      "openai-chat",
      chat(assistant(call("1", "x", nested(240)), call("2", "x", nested(241)))),
    );
    expectSound(run);
    expect(ofKind(run, "tool.call.started").map(({ action }) => action.args)).toEqual([
      JSON.parse(nested(240)),
      nested(241),
    ]);
    const whole = await runOf("openai-chat", `[{"role":"user","content":${nested(254)}}]`);
    expectSound(whole);
    expect(JSON.stringify(ofKind(whole, "message.completed")[0]?.action.message)).toContain("json-depth");
  });

  it("a value over 1 MiB, and values that are too much together, are replaced by size and digest", async () => {
    const mebi = 1024 * 1024;
    const long = "x".repeat(mebi - 2);
    const run = await runOf(
      "openai-chat",
      chat(
        assistant(call("1", "a", "{}"), call("2", "a", "{}"), call("3", "b", "{}")),
        tool("1", long),
        tool("2", `${long}x`),
        tool("3", `Error: ${long}`),
      ),
    );
    expectSound(run);
    const [fits, tooLong, error] = ofKind(run, "tool.call.completed").map(({ outcome }) => outcome);
    expect(fits.result).toBe(long);
    expect(tooLong.result).toEqual({
      "runseal.lossy": "value-too-long",
      head: "x".repeat(1000),
      bytes: String(mebi + 1),
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    // A field that has to be a text is cut.
    expect(error.error).toBe(`Error: ${long}`.slice(0, 100_000));
    const both = await runOf(
      "openai-chat",
      chat({ role: "assistant", content: long, annotations: "y".repeat(mebi - 100) }),
    );
    expectSound(both);
    const kept = ofKind(both, "model.completed")[0]!;
    expect(
      [kept.outcome.result, kept.action.extra.annotations].filter((one) => typeof one === "string").length,
    ).toBe(1);
  });

  it("values that read as commitments or salted values are kept as they are", async () => {
    const run = await runOf(
      "openai-chat",
      chat(
        assistant(
          call("1", "x", '{"$value":1,"$salt":"no"}'),
          call("2", "x", '{"$commitment":"00"}'),
          call("3", "x", '{"nested":{"$value":1}}'),
        ),
      ),
    );
    expectSound(run);
    expect(ofKind(run, "tool.call.started").map(({ action }) => action.args)).toEqual([
      { $value: { $value: 1, $salt: "no" } },
      { $value: { $commitment: "00" } },
      { nested: { $value: 1 } },
    ]);
  });

  it("a member __proto__ is one like any other", async () => {
    const run = await runOf("openai-chat", chat(assistant(call("1", "__proto__", '{"__proto__":{"a":1}}'))));
    expectSound(run);
    expect(run.entries.find((text) => text.includes("tool.call.started"))).toContain(
      '"args":{"__proto__":{"a":1}}',
    );
  });

  it("names and ids that are longer than a label are cut, and whole under extra", async () => {
    const long = "n".repeat(600);
    const run = await runOf("openai-chat", chat(assistant(call(long, long, "{}")), tool(long, "ok")));
    expectSound(run);
    expect(ofKind(run, "tool.call.started")[0]?.action).toMatchObject({
      tool: long.slice(0, 512),
      tool_call_id: long.slice(0, 512),
      extra: { tool: long, tool_call_id: long },
    });
    expect(callsOf(run)).toEqual([`m0.c0 ${long.slice(0, 512)} -> success`]);
  });

  it("whatever JSON is in a message, the log accepts the entries and the names stay the same", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.jsonValue(),
        fc.string(),
        fc.string({ unit: "binary" }),
        async (value, name, text) => {
          const source = JSON.stringify([
            { role: "user", content: value },
            assistant(call(text, name, JSON.stringify(value)), call(null, name, text)),
            { role: "tool", tool_call_id: text, content: value, more: value },
          ]);
          const run = await runOf("openai-chat", source);
          expectSound(run);
          expect(await runOf("openai-chat", source)).toEqual(run);
        },
      ),
      { numRuns: 200 },
    );
  });
});
