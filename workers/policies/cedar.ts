/**
 * The Cedar engine of this isolate. Its wasm (4.3 MB) is loaded when the first Cedar policy is opened: an isolate that
 * only takes entries never pays for it.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { cedarPolicy } from "../../shared/recheck/cedar.ts";
import { CedarEngine } from "../../shared/recheck/cedar-engine.ts";
import type { Policy } from "../../shared/recheck/policy.ts";
import type { PolicyDocument } from "../../shared/recheck/policy-document.ts";
import { within } from "../../shared/recheck/request.ts";

let engine: CedarEngine | null = null;

/** The policy of a Cedar document. Throws `RunsealError("policy-invalid")` with a pointer into what was sent. */
export async function openCedar({ source, policyId, pointer }: PolicyDocument): Promise<Policy> {
  // The bundler makes a module of it; the package's types describe what the wasm itself exports.
  const loaded = (await import(
    "../../node_modules/@cedar-policy/cedar-wasm/esm/cedar_wasm_bg.wasm"
  )) as unknown;
  const { default: module } = loaded as { readonly default: WebAssembly.Module };
  engine ??= new CedarEngine(module);
  const shared = engine;
  return within(pointer, () => cedarPolicy(source, shared, { crypto: nativeCrypto, policyId }));
}
