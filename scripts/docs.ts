/**
 * `npm run docs`: writes the pages that are made from the code. A test holds each against it.
 *
 * @module
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { renderErrorsMarkdown } from "../shared/api/errors-markdown.ts";
import { renderKindsMarkdown } from "../shared/kinds/markdown.ts";

const docs = fileURLToPath(new URL("../docs/", import.meta.url).href);
for (const [name, text] of [
  ["errors.md", renderErrorsMarkdown()],
  ["kinds.md", renderKindsMarkdown()],
] as const) {
  writeFileSync(join(docs, name), text);
  console.log(`Wrote docs/${name}`);
}
