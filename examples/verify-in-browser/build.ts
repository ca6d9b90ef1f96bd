/**
 * Builds the page into one HTML file: `npm run page [-- FILE]`. Script and style are inside of it,
 * and a content security policy that allows exactly these two and no connection.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const folder = dirname(fileURLToPath(import.meta.url));
const root = join(folder, "..", "..");

/** A source in a content security policy, by the hash of its text. */
function source(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

/** The page's HTML. Throws esbuild's BuildFailure where the script does not bundle. */
export async function buildPage(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(folder, "page.ts")],
    bundle: true,
    format: "iife",
    platform: "browser",
    target: "es2022",
    minify: true,
    charset: "utf8",
    write: false,
    absWorkingDir: root,
  });
  const script = outputFiles[0]?.text ?? "";
  const style = readFileSync(join(folder, "style.css"), "utf8");
  const policy = `default-src 'none'; script-src ${source(script)}; style-src ${source(style)}; base-uri 'none'; form-action 'none'`;
  const parts: Readonly<Record<string, string>> = {
    policy: `<meta http-equiv="content-security-policy" content="${policy}">`,
    style: `<style>${style}</style>`,
    script: `<script>${script}</script>`,
  };
  const html = readFileSync(join(folder, "index.html"), "utf8");
  return html.replace(/<!-- (policy|style|script) -->/g, (_, name: string) => parts[name] ?? "");
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const file = resolve(process.argv[2] ?? join(root, "dist", "verify-in-browser.html"));
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, await buildPage());
  console.log(`Wrote ${file}`);
}
