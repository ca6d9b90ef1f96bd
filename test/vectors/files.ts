/**
 * All vector files by name, as text.
 *
 * @module
 */
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { bundleVectors, checkpointVectors, registryVectors, tenantLogVectors, treeVectors } from "./make-evidence.ts";
import { leafVectors, refusedLeafVectors, statementVectors } from "./make-leaves.ts";
import { canonicalVectors, fieldVectors, logIdVectors } from "./make-values.ts";

const ABOUT =
  "Made by test/vectors/generate.ts; docs/format.md is the specification. A label stands for bytes: SHA-256(label + '/0') || SHA-256(label + '/1') || ..., cut to length.";

/** The files' contents, before they are written as JSON. */
export function vectorData(crypto: CryptoPort): Record<string, unknown> {
  return {
    "canonical-json": canonicalVectors(),
    field: fieldVectors(crypto),
    "log-id": logIdVectors(crypto),
    leaf: leafVectors(crypto),
    "leaf-refused": refusedLeafVectors(),
    statement: statementVectors(crypto),
    tree: treeVectors(crypto),
    registry: registryVectors(crypto),
    checkpoint: checkpointVectors(crypto),
    "tenant-log": tenantLogVectors(crypto),
    bundle: bundleVectors(crypto),
  };
}

/** File names and their text. */
export function vectorFiles(crypto: CryptoPort): Map<string, string> {
  return new Map(
    Object.entries(vectorData(crypto)).map(([name, vectors]) => [
      `${name}.json`,
      `${JSON.stringify({ about: ABOUT, vectors }, null, 1)}\n`,
    ]),
  );
}
