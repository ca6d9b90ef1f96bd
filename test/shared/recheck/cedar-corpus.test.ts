import { readdirSync } from "node:fs";
import { preparsePolicySet, statefulIsAuthorized } from "@cedar-policy/cedar-wasm/nodejs";
import { expect, it } from "vitest";
import { cedarEngine } from "../../support/cedar.ts";
import { describeWithShared, readShared, readSharedJson, sharedPath } from "../../support/shared-files.ts";

interface CorpusTest {
  readonly policies: string;
  readonly entities: string;
  readonly requests: readonly {
    readonly description: string;
    readonly principal: unknown;
    readonly action: unknown;
    readonly resource: unknown;
    readonly context: unknown;
    readonly decision: string;
    readonly reason: readonly string[];
    readonly errors: readonly string[];
  }[];
}

const ROOT = "corpus/cedar";
/** Their entities hold extension values as plain strings, which only their schema says. A re-check has no schema. */
const NEED_SCHEMA: ReadonlySet<string> = new Set([
  "example_use_cases/4d.json",
  "example_use_cases/4e.json",
  "example_use_cases/4f.json",
  "multi/3.json",
  "multi/4.json",
]);

interface CedarAnswer {
  readonly response: {
    readonly decision: string;
    readonly diagnostics: {
      readonly reason: readonly string[];
      readonly errors: readonly { readonly policyId: string }[];
    };
  };
}

function summary({ response: { decision, diagnostics } }: CedarAnswer) {
  const errors = diagnostics.errors.map(({ policyId }) => policyId).sort();
  return { decision, reason: [...diagnostics.reason].sort(), errors };
}

describeWithShared("Cedar's own integration tests, through our engine", `${ROOT}/tests`, () => {
  const files = readdirSync(sharedPath(`${ROOT}/tests`), { recursive: true })
    .map(String)
    .filter((name) => name.endsWith(".json"))
    .sort();
  const engine = cedarEngine();

  it.each(files)("%s", (file) => {
    const test = readSharedJson<CorpusTest>(`${ROOT}/tests/${file}`);
    const entities = readShared(`${ROOT}/${test.entities}`);
    const text = readShared(`${ROOT}/${test.policies}`);
    preparsePolicySet("theirs", { staticPolicies: text });
    for (const { principal, action, resource, context, decision, reason, errors } of test.requests) {
      const call = `${JSON.stringify({ principal, action, resource, context }).slice(0, -1)},"entities":${entities}`;
      const ours = engine.authorize({ key: file, text }, (id) => `${call},"preparsedPolicySetId":"${id}"}`);
      const theirs = statefulIsAuthorized(JSON.parse(`${call},"preparsedPolicySetId":"theirs"}`));
      expect(summary(ours as CedarAnswer)).toEqual(summary(theirs as CedarAnswer));
      if (NEED_SCHEMA.has(file)) continue;
      const expected = { decision, reason: [...reason].sort(), errors: [...errors].sort() };
      expect(summary(ours as CedarAnswer)).toEqual(expected);
    }
    expect(test.requests.length).toBeGreaterThan(0);
  });
});
