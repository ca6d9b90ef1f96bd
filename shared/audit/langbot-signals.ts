/**
 * Words in an event's diagnostics that a run must not end with, and the errors in a tool's arguments that a model may
 * recover from.
 *
 * @module
 */
import { PYTHON_SPACE, type PyValue, pyJson, pyStr } from "./python-value.ts";

// The patterns are Python's with re.IGNORECASE: an i is also a dotless or a dotted one, white space and digits are
// Unicode's, and a word ends where a letter, digit or underscore of any script does.
const I = "[i\\u0131\\u0130]";
const SPACES = `[${PYTHON_SPACE}]`;
const WORD = "[\\p{L}\\p{N}_]";

function pattern(source: string): RegExp {
  return new RegExp(source.replaceAll("i", I).replaceAll("~", SPACES), "iu");
}

const FORBIDDEN = pattern(
  "invalid json(?! arguments)|unauthori[sz]ed|permission denied|forbidden|timed?~*out|timeout",
);

const NAME_START = "[A-Za-z_\\u0131\\u0130]";
const NAME = "[A-Za-z0-9_\\u0131\\u0130]";
const ARGUMENT_ERROR = new RegExp(
  `${pattern("invalid json arguments").source}|` +
    `(?<!${WORD})\\p{Nd}+${pattern("~+validation errors?~+for~+").source}${NAME_START}${NAME}*Args(?!${WORD})`,
  "iu",
);

/** The first forbidden words, as they are written; "" where there are none. */
export function forbiddenSignal(diagnostics: string): string {
  return FORBIDDEN.exec(diagnostics)?.[0] ?? "";
}

/** The first sign of malformed arguments, as it is written; "" where there is none. */
export function argumentErrorSignal(diagnostics: string): string {
  return ARGUMENT_ERROR.exec(diagnostics)?.[0] ?? "";
}

const DIAGNOSTIC_KEYS = new Set(["error", "code", "status", "reason", "error_message"]);

/** The text of an event that is searched. Of a run.failed it is the whole payload besides. */
export function diagnosticText(type: string, data: ReadonlyMap<string, PyValue>): string {
  const lines: string[] = [];
  collect(data, lines);
  const text = lines.join("\n");
  return type === "run.failed" ? `${text}\n${pyJson(new Map(data))}` : text;
}

/** Objects are descended into, under any key; lists are not. */
function collect(object: ReadonlyMap<string, PyValue>, into: string[]): void {
  for (const [key, value] of object) {
    if (DIAGNOSTIC_KEYS.has(key.toLowerCase()) && value !== null && value !== "") into.push(pyStr(value));
    if (value instanceof Map) collect(value, into);
  }
}

/** Every `text` string in a result, at any depth, lists included. */
export function hasResultText(result: PyValue | undefined, wanted: string): boolean {
  if (Array.isArray(result)) return result.some((item) => hasResultText(item, wanted));
  if (!(result instanceof Map)) return false;
  return [...result].some(([key, value]) =>
    key === "text" && typeof value === "string" ? value === wanted : hasResultText(value, wanted),
  );
}
