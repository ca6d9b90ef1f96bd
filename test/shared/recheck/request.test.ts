import { describe, expect, it } from "vitest";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import { documentHash, documentText } from "../../../shared/recheck/policy-document.ts";
import { readRecheckRequest as read } from "../../../shared/recheck/request.ts";
import { TOOLS } from "./support.ts";

function inline(text: string) {
  const { policy } = read(`{"policy":${text}}`);
  if (policy.kind !== "inline") throw new Error("not inline");
  return policy.document;
}

describe("the body of a re-check", () => {
  it("names the policy, and its fixed values keep their digits", () => {
    const one = inline('{"rules":{"tools":{"t":{"fixed":{"n":1.0}}}}}');
    const other = inline('{"rules":{"tools":{"t":{"fixed":{"n":1}}}}, "engine":"rules"}');
    expect(documentText(one)).toBe('{"rules":{"tools":{"t":{"fixed":{"n":1.0}}}}}');
    expect(documentText(other)).toBe('{"rules":{"tools":{"t":{"fixed":{"n":1}}}}}');
    expect(documentHash(pureCrypto, one)).not.toBe(documentHash(pureCrypto, other));
    expect(one.pointer).toBe("/policy/rules");
  });

  it("may name a stored policy, and its version", () => {
    expect(read('{"policy":{"name":"team.v1"}}').policy).toEqual({
      kind: "stored",
      name: "team.v1",
      version: null,
      pointer: "/policy",
    });
    expect(read('{"policy":{"version":3,"name":"a"}}').policy).toMatchObject({ name: "a", version: 3 });
  });

  it("may hold a policy of another engine, with the identity that its sender keeps", () => {
    expect(inline('{"cedar":"permit(principal,action,resource);","policy_id":"team/v1"}')).toMatchObject({
      engine: "cedar",
      source: '"permit(principal,action,resource);"',
      policyId: "team/v1",
    });
    expect(inline('{"module":"export"}')).toMatchObject({ engine: "module", policyId: null });
  });

  it("may hold decisions, by seq, by hash, or by both", () => {
    const hash = "ab".repeat(32);
    const { policy } = read(
      `{"policy":{"policy_id":"x","decisions":[{"seq":3,"decision":{"outcome":"deny"}},{"hash":"${hash}","error":"e"}]}}`,
    );
    expect(policy).toMatchObject({
      kind: "decisions",
      decisions: {
        policyId: "x",
        pointer: "/policy/decisions",
        list: [
          { seq: 3, hash: null, answer: { ok: true, decision: { outcome: "deny" } } },
          { seq: null, hash, answer: { ok: false, error: "e" } },
        ],
      },
    });
  });

  it("asks for recorded specs unless told", () => {
    const one = read('{"policy":{"rules":{"side_effects":{}}}}');
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
    ['{"policy":[]}', "policy-invalid", "/policy"],
    ['{"policy":{}}', "policy-invalid", "/policy"],
    ['{"policy":{"engine":"cedar","rules":{}}}', "policy-invalid", "/policy/engine"],
    ['{"policy":{"rule":{}}}', "policy-invalid", "/policy/rule"],
    ['{"policy":{"rules":{},"cedar":""}}', "policy-invalid", "/policy/cedar"],
    ['{"policy":{"rules":{},"name":"a"}}', "policy-invalid", "/policy"],
    ['{"policy":{"rules":{},"policy_id":"a"}}', "policy-invalid", "/policy/policy_id"],
    ['{"policy":{"cedar":"","policy_id":"a\\nb"}}', "policy-identity", "/policy/policy_id"],
    ['{"policy":{"name":"a b"}}', "policy-invalid", "/policy/name"],
    ['{"policy":{"name":"a","version":0}}', "policy-invalid", "/policy/version"],
    ['{"policy":{"cedar":"","version":1}}', "policy-invalid", "/policy/version"],
    ['{"policy":{"name":"a","policy_id":"a"}}', "policy-invalid", "/policy/policy_id"],
    ['{"policy":{"decisions":[]}}', "policy-invalid", "/policy/decisions"],
    ['{"policy":{"decisions":[{"seq":1}]}}', "policy-invalid", "/policy/decisions/0"],
    ['{"policy":{"decisions":[{"error":"e"}]}}', "policy-invalid", "/policy/decisions/0"],
    [
      '{"policy":{"decisions":[{"seq":1,"error":"e"},{"seq":1,"error":"e"}]}}',
      "policy-invalid",
      "/policy/decisions/1",
    ],
    ['{"policy":{"decisions":[{"seq":1.0,"error":"e"}]}}', "policy-invalid", "/policy/decisions/0/seq"],
    ['{"policy":{"decisions":[{"hash":"AB","error":"e"}]}}', "policy-invalid", "/policy/decisions/0/hash"],
    [
      '{"policy":{"decisions":[{"seq":1,"decision":{"outcome":"ok"}}]}}',
      "policy-invalid",
      "/policy/decisions/0/decision/outcome",
    ],
    [
      '{"policy":{"decisions":[{"seq":1,"decision":{"outcom":"deny"}}]}}',
      "policy-invalid",
      "/policy/decisions/0/decision/outcom",
    ],
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
