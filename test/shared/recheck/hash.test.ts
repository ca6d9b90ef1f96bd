import { expect, it } from "vitest";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import { canonicalJson } from "../../../shared/json/canonical.ts";
import { approvalHash, contentHash } from "../../../shared/recheck/hash.ts";
import { describeWithShared, readSharedJson } from "../../support/shared-files.ts";

const FILE = "vectors/seed-systems.json";

interface Vectors {
  readonly agentrt_approval_hash: readonly Record<
    "kind" | "capability" | "presentation" | "request" | "hash",
    string
  >[];
  readonly agentrt_content_hash: readonly (readonly [string, string, string?])[];
}

describeWithShared("agentrt's known answers", FILE, () => {
  it("approval hashes", () => {
    const { agentrt_approval_hash: vectors } = readSharedJson<Vectors>(FILE);
    expect(vectors.length).toBeGreaterThan(0);
    for (const { kind, capability, presentation, request, hash } of vectors) {
      const { run_id: runId, step_id: stepId, spec, args } = JSON.parse(request);
      const text = (value: unknown) => canonicalJson(JSON.stringify(value));
      const subject = {
        kind,
        capability: canonicalJson(capability),
        presentation: canonicalJson(presentation),
        runId,
        stepId,
        spec: text(spec),
        args: text(args),
      };
      expect(approvalHash(pureCrypto, subject)).toBe(hash);
      expect(approvalHash(pureCrypto, { ...subject, stepId: "s2" })).not.toBe(hash);
    }
  });

  it("content hashes, of which spec hashes are one", () => {
    const { agentrt_content_hash: vectors } = readSharedJson<Vectors>(FILE);
    const accepted = vectors.filter(([text, , note]) => note === undefined && text !== "1e400");
    expect(accepted.length).toBeGreaterThan(40);
    for (const [text, hash] of accepted) expect(contentHash(pureCrypto, text)).toBe(hash);
  });
});
