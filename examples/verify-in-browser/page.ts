/**
 * The page: takes a file and what was kept, shows the verdict, the first break, what was trusted, what was not checked.
 *
 * @module
 */
import type { VerifyReport } from "../../shared/api/schemas.ts";
import type { PageElement, PageEvent, PageInput, PageProgress } from "./dom.ts";
import { body, byId, element } from "./dom.ts";
import { readKept } from "./kept.ts";
import { verifyFile } from "./verify-file.ts";

const INPUTS = ["registry", "checkpoint", "head"] as const;
/** Issues that the page lists; the report has up to 1,024. */
const SHOWN_ISSUES = 100;

const form = byId("form");
const drop = byId("drop");
const fileInput = byId<PageInput>("file");
const fileName = byId("file-name");
const verifyButton = byId<PageInput>("verify");
const stopButton = byId<PageInput>("stop");
const running = byId("running");
const progress = byId<PageProgress>("progress");
const status = byId("status");
const result = byId("result");
const verdict = byId("verdict");
const details = byId("details");

let chosen: File | null = null;
let stop: AbortController | null = null;

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

function choose(files: ArrayLike<File> | null | undefined): void {
  const file = files?.[0];
  if (file === undefined) return;
  chosen = file;
  fileName.textContent = `${file.name}, ${megabytes(file.size)}`;
}

/** The verdict in words, and the class that colours it. */
function headline(report: VerifyReport): [words: string, tone: "good" | "bad" | "open"] {
  const at = report.break === undefined ? "" : ` at entry ${report.break.seq}: ${report.break.verdict}`;
  if (report.verdict === "broken") return [`Broken${at}`, "bad"];
  if (report.verdict === "unsupported") return [`Not readable by this version${at}`, "open"];
  return report.pinned === true ? ["Intact", "good"] : ["Consistent, not pinned", "open"];
}

function facts(rows: readonly (readonly [string, string | null | undefined])[]): PageElement {
  const list = element("dl");
  for (const [name, value] of rows) {
    if (value !== null && value !== undefined) list.append(element("dt", name), element("dd", value));
  }
  return list;
}

function listOf(title: string, items: readonly string[]): PageElement[] {
  if (items.length === 0) return [];
  return [element("h3", title), element("ul", ...items.map((item) => element("li", item)))];
}

function keptHeadText({ kept_head: kept }: VerifyReport): string | null {
  if (kept === undefined) return null;
  if (kept.matches) return `entry ${kept.seq} matches`;
  return kept.found === kept.hash
    ? `entry ${kept.seq} was not reached by a walk over every leaf`
    : `entry ${kept.seq} does not match`;
}

function show(report: VerifyReport): void {
  const [words, tone] = headline(report);
  verdict.textContent = words;
  result.className = tone;
  const { break: broken, head, last, issues } = report;
  const shown = issues
    .slice(0, SHOWN_ISSUES)
    .map(({ seq, code, detail }) => `entry ${seq}: ${code}: ${detail}`);
  const more = issues.length - shown.length;
  details.replaceChildren(
    facts([
      ["First break", broken?.detail],
      ["Expected", broken?.expected],
      ["Found", broken?.found],
      ["Entries checked", `${report.checked} (range ${report.from} to ${report.to})`],
      ["Signed head", head?.size === undefined ? null : `${head.size} entries, root ${head.root}`],
      ["Last entry", last === null ? null : `${last.seq}:${last.hash}`],
      ["Kept head", keptHeadText(report)],
    ]),
    ...listOf("What was trusted", report.trusted),
    ...listOf("What was not checked", report.not_checked ?? []),
    ...listOf(`Issues (${issues.length})`, more > 0 ? [...shown, `and ${more} more`] : shown),
  );
  result.hidden = false;
  verdict.focus();
}

function say(words: string): void {
  status.textContent = words;
}

/** Marks what can't be read; true where all can. */
function markErrors(errors: ReturnType<typeof readKept>["errors"]): boolean {
  let first: PageElement | null = null;
  for (const name of INPUTS) {
    const error = errors[name];
    byId(`${name}-error`).textContent = error ?? "";
    const input = byId(name);
    if (error === undefined) input.removeAttribute("aria-invalid");
    else {
      input.setAttribute("aria-invalid", "true");
      first ??= input;
    }
  }
  first?.focus();
  return first === null;
}

async function run(): Promise<void> {
  const texts = Object.fromEntries(INPUTS.map((name) => [name, byId<PageInput>(name).value]));
  const { kept, errors } = readKept(texts as Record<(typeof INPUTS)[number], string>);
  if (!markErrors(errors)) return;
  const file = chosen;
  if (file === null) {
    say("Choose a bundle first.");
    fileInput.focus();
    return;
  }
  stop = new AbortController();
  result.hidden = true;
  running.hidden = false;
  verifyButton.disabled = true;
  progress.max = Math.max(file.size, 1);
  progress.value = 0;
  say("Reading ...");
  try {
    const onProgress = (bytes: number, entries: number): void => {
      progress.value = bytes;
      say(`${megabytes(bytes)} of ${megabytes(file.size)} read, ${entries} entries checked`);
    };
    const report = await verifyFile(file, kept, onProgress, stop.signal);
    say("Done.");
    show(report);
  } catch (error) {
    say(stop.signal.aborted ? "Stopped: nothing was verified." : `The file can't be read: ${String(error)}`);
  } finally {
    running.hidden = true;
    verifyButton.disabled = false;
    stop = null;
  }
}

const prevent = (event: PageEvent): void => event.preventDefault();

form.addEventListener("submit", (event) => {
  prevent(event);
  if (stop === null) void run();
});
// Choosing the same file again, which may have changed, is a choice too.
fileInput.addEventListener("click", () => {
  fileInput.value = "";
});
fileInput.addEventListener("change", () => choose(fileInput.files));
stopButton.addEventListener("click", () => stop?.abort());
// A file that misses the target must not take the page's place.
for (const type of ["dragover", "drop"]) body.addEventListener(type, prevent);
drop.addEventListener("dragover", () => {
  drop.className = "over";
});
drop.addEventListener("dragleave", () => {
  drop.className = "";
});
drop.addEventListener("drop", (event) => {
  drop.className = "";
  choose(event.dataTransfer?.files);
});
