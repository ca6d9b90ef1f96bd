import { describe, expect, it } from "vitest";
import { parseServeFlags } from "../../../cli/serve/flags.ts";

describe("the flags of npm start", () => {
  it("leave the choice where nothing is given", () => {
    expect(parseServeFlags(["start"])).toEqual({
      command: "start",
      port: undefined,
      host: undefined,
      state: undefined,
      demo: true,
      help: false,
    });
  });

  it("are read", () => {
    const args = ["demo", "--port", "0", "--state", "some where", "--no-demo", "--host", "0.0.0.0", "-h"];
    expect(parseServeFlags(args)).toEqual({
      command: "demo",
      port: 0,
      host: "0.0.0.0",
      state: "some where",
      demo: false,
      help: true,
    });
    expect(parseServeFlags(["start", "--port=65535"]).port).toBe(65535);
  });

  it.each([
    [[], "start or demo"],
    [["serve"], "start or demo"],
    [["start", "--prot", "1"], "--prot"],
    [["start", "--port"], "--port"],
    [["start", "--port", "http"], "number"],
    [["start", "--port", "65536"], "number"],
    [["start", "--port", "1e3"], "number"],
    [["start", "--port", ""], "number"],
    [["start", "--state", ""], "folder"],
    [["start", "extra"], "extra"],
  ])("refuse %j as a mistake of usage", (args, reason) => {
    expect(() => parseServeFlags(args)).toThrow(
      expect.objectContaining({ code: "usage", message: expect.stringContaining(reason) }),
    );
  });
});
