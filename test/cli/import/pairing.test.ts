import { describe, expect, it } from "vitest";
import { OpenCalls, type ResultHint } from "../../../cli/import/pairing.ts";

/** Open calls from `group/providerId/tool/args`. */
function open(...specs: string[]): OpenCalls {
  const calls = new OpenCalls();
  specs.forEach((spec, position) => {
    const [group, providerId, tool, argsText] = spec.split("/");
    calls.add({
      call: `c${position}`,
      group: Number(group),
      providerId: providerId!,
      tool: tool!,
      argsText: argsText!,
    });
  });
  return calls;
}

const take = (calls: OpenCalls, hint: ResultHint): string => {
  const taken = calls.take(hint);
  return taken === undefined ? "none" : `${taken.call.call} ${taken.by}`;
};

describe("OpenCalls", () => {
  it("pairs by id where one open call has it, in any order of the results", () => {
    const calls = open("0/a/x/1", "0/b/x/1");
    expect(take(calls, { providerId: "b", tool: "x", argsText: "1" })).toBe("c1 id");
    expect(take(calls, { providerId: "a" })).toBe("c0 id");
    expect(calls.rest).toEqual([]);
  });

  it("pairs empty ids by equal name and arguments, then by name, in order", () => {
    const calls = open("0//x/1", "0//y/1", "0//x/2", "0//x/1");
    expect(take(calls, { providerId: "", tool: "x", argsText: "2" })).toBe("c2 order");
    expect(take(calls, { providerId: "", tool: "x", argsText: "1" })).toBe("c0 order");
    expect(take(calls, { tool: "x", argsText: "9" })).toBe("c3 order");
    expect(take(calls, { tool: "z", argsText: "1" })).toBe("none");
    expect(calls.rest.map(({ call }) => call)).toEqual(["c1"]);
  });

  it("pairs by order where a result says nothing", () => {
    const calls = open("0//x/1", "0//y/1");
    expect([take(calls, {}), take(calls, {}), take(calls, {})]).toEqual(["c0 order", "c1 order", "none"]);
  });

  it("tells calls of one message with one id apart by name and arguments", () => {
    const calls = open("0/a/x/1", "0/a/y/2");
    expect(take(calls, { providerId: "a", tool: "y", argsText: "2" })).toBe("c1 order");
    expect(take(calls, { providerId: "a", tool: "y", argsText: "2" })).toBe("c0 id");
  });

  it("gives a repeated id to the latest message, and leaves the earlier call open", () => {
    const calls = open("0/a/x/1", "1/a/y/2");
    expect(take(calls, { providerId: "a" })).toBe("c1 id");
    expect(calls.rest.map(({ call }) => call)).toEqual(["c0"]);
  });

  it("finds an earlier message's call by id, but never by order", () => {
    const calls = open("0/a/x/1", "1/b/y/2");
    expect(take(calls, { providerId: "a" })).toBe("c0 id");
    expect(take(calls, { tool: "x", argsText: "1" })).toBe("none");
  });

  it("pairs an id that fits no call only with an equal name, and says so", () => {
    const calls = open("0/a/x/1");
    expect(take(calls, { providerId: "zzz" })).toBe("none");
    expect(take(calls, { providerId: "zzz", tool: "x", argsText: "1" })).toBe("c0 order-despite-id");
  });
});
