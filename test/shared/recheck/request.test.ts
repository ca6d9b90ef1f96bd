import { describe, expect, it } from "vitest";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import { readRecheckRequest } from "../../../shared/recheck/request.ts";
import { TOOLS } from "./support.ts";

const read = (text: string) => readRecheckRequest(pureCrypto, text);

describe("the body of a re-check", () => {
  it("names the policy, and its fixed values keep their digits", () => {
    const one = read('{"policy":{"rules":{"tools":{"t":{"fixed":{"n":1.0}}}}}}');
    const other = read(
      '{"policy":{"engine":"rules","rules":{"tools":{"t":{"fixed":{"n":1}}}}},"specs":"recorded"}',
    );
    expect(one.policy.id).toMatch(/^runseal-rules\/sha256:[0-9a-f]{64}$/);
    expect(one.policy.id).not.toBe(other.policy.id);
    expect(one).toMatchObject({ specSource: "recorded" });
    expect("currentTools" in one).toBe(false);
  });

  it("takes current tools as they are written", () => {
    const tool = TOOLS.get("read")!;
    const body = read(`{"tools":[ ${tool} ],"specs":"current","policy":{"rules":{"side_effects":{}}}}`);
    expect(body).toMatchObject({ specSource: "current", currentTools: [tool] });
  });

  const RULES = '"policy":{"rules":{"side_effects":{}}}';

  it.each([
    ["[]", "recheck-request", ""],
    ["{}", "recheck-request", "/policy"],
    ['{"policy":[]}', "recheck-request", "/policy"],
    ['{"policy":{}}', "recheck-request", "/policy/rules"],
    ['{"policy":{"engine":"cedar","rules":{}}}', "recheck-request", "/policy/engine"],
    ['{"policy":{"cedar":{}}}', "recheck-request", "/policy/cedar"],
    ['{"policy":{"rules":{"tools":{"a":{"deny":1}}}}}', "policy-invalid", "/policy/rules/tools/a/deny"],
    ['{"policy":{"rules":{"policy_id":"a\\nb","tools":{}}}}', "policy-identity", "/policy/rules/policy_id"],
    [`{${RULES},"spec":"recorded"}`, "recheck-request", "/spec"],
    [`{${RULES},"specs":"newest"}`, "recheck-request", "/specs"],
    [`{${RULES},"specs":"current"}`, "recheck-request", "/tools"],
    [`{${RULES},"tools":[]}`, "recheck-request", "/tools"],
    [`{${RULES},"specs":"current","tools":{}}`, "recheck-request", "/tools"],
    [`{${RULES},"specs":"current","tools":[{}]}`, "current-tool", "/tools/0"],
    [`{${RULES},${RULES}}`, "json-duplicate-key", "/policy"],
    [`{${RULES}} x`, "json-syntax", ""],
  ])("is refused: %s", (text, code, pointer) => {
    expect(() => read(text)).toThrow(expect.objectContaining({ code, pointer }));
  });
});
