/**
 * A policy's identity from its document alone: no engine is loaded, and no module is run.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { JsonReader } from "../../shared/json/reader.ts";
import { cedarPolicyId, readCedarSource } from "../../shared/recheck/cedar-source.ts";
import { modulePolicyId } from "../../shared/recheck/module.ts";
import type { PolicyDocument } from "../../shared/recheck/policy-document.ts";
import { rulesPolicy } from "../../shared/recheck/rules.ts";

/** The identity that the opened policy has. Throws `RunsealError` for a source that can't be read. */
export function documentIdentity({ engine, source, policyId }: PolicyDocument): string {
  if (policyId !== null) return policyId;
  switch (engine) {
    case "rules":
      return rulesPolicy(source, nativeCrypto).id;
    case "cedar":
      return cedarPolicyId(readCedarSource(source), nativeCrypto);
    case "module":
      return modulePolicyId(new JsonReader(source).readString(), nativeCrypto);
  }
}
