/**
 * Writes the vector files beside this one, and the examples of docs/format.md: `node test/vectors/generate.ts`. A test
 * fails where they are not what this would write. A change of a published vector is a change of the format.
 *
 * @module
 */
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { nativeCrypto } from "../../native/crypto.ts";
import { docExamples, fillExamples } from "./doc.ts";
import { vectorFiles } from "./files.ts";

const folder = dirname(fileURLToPath(import.meta.url));
const page = join(folder, "..", "..", "docs", "format.md");

for (const [name, text] of vectorFiles(nativeCrypto)) writeFileSync(join(folder, name), text);
writeFileSync(page, fillExamples(readFileSync(page, "utf8"), docExamples(nativeCrypto)));
