/**
 * Claude Code sessions: JSONL, one line per content block or message, or the same wrapped in `{loglines: []}`
 * (FORMATS.md section 3). A session file grows while the session lasts, so run and step names come from the
 * session's own ids and not from the content: importing it again later adds what is new.
 *
 * @module
 */
import type { JsonValue } from "../../shared/json/value.ts";
import { type Chain, chainsOf, type SessionLine } from "./claude-chains.ts";
import type { ImportContext } from "./context.ts";
import { Losses, readJson } from "./lenient.ts";
import { contentDigest, runName } from "./names.ts";
import { layoutOf, linesOf } from "./split.ts";
import { sourceTime } from "./times.ts";
import {
  argumentsOf,
  at,
  contentText,
  countAt,
  isObject,
  type JsonObject,
  listAt,
  objectOf,
  orAbsent,
  textAt,
} from "./tree.ts";
import type { ImportedRun } from "./types.ts";
import { RunWriter } from "./writer.ts";

/** The runs of a session file: the sessions, each followed by its subagents (sidechains). */
export function* importClaudeCode(text: string, context: ImportContext): Generator<ImportedRun> {
  const losses = new Losses();
  const lines = [...readLines(text, losses, context)];
  for (const chain of chainsOf(lines)) yield writeChain(chain, losses, context);
}

/** Every line that is a conversation entry, numbered from 1 as in the file. */
function* readLines(text: string, losses: Losses, context: ImportContext): Generator<SessionLine> {
  const whole = layoutOf(text) === "single" ? wholeOf(text, losses) : undefined;
  if (Array.isArray(at(whole, "loglines"))) {
    let number = 0;
    for (const entry of listAt(whole, "loglines")) {
      number += 1;
      if (isObject(entry)) yield { number, entry };
      else context.skip(`logline ${number} is no object; it is not imported`);
    }
    return;
  }
  if (isObject(whole)) {
    yield { number: 1, entry: whole };
    return;
  }
  for (const record of linesOf(text)) {
    const entry = context.read(record, losses);
    if (isObject(entry)) yield { number: Number(record.where.slice("line ".length)), entry };
    else if (entry !== undefined) context.skip(`${record.where} is no object; it is not imported`);
  }
}

/** The file as one document, or undefined where it is none. */
function wholeOf(text: string, losses: Losses): JsonValue | undefined {
  try {
    return readJson(text, losses);
  } catch {
    return undefined;
  }
}

function writeChain(chain: Chain, losses: Losses, context: ImportContext): ImportedRun {
  const first = chain.lines[0]?.entry;
  // A wrapped sample may have no session id at all: then the content names the run.
  const session =
    chain.session ??
    `unnamed-${contentDigest(
      chain.lines.map((line) => line.entry),
      context,
    )}`;
  const run = (sidechain: string | undefined): string =>
    runName(["claude-code", session, ...(sidechain === undefined ? [] : [sidechain])], context);
  const goal = goalOf(chain);
  const writer = new RunWriter(
    {
      format: "claude-code",
      run: run(chain.sidechain),
      session: runName([session], context),
      title: goal ?? "Claude Code session",
    },
    context,
    losses,
  );
  writer.created({
    goal,
    at: first === undefined ? undefined : sourceTime(first),
    extra: objectOf([
      ["parent_run", chain.sidechain === undefined ? undefined : run(undefined)],
      ...["cwd", "version", "gitBranch", "userType"].map(
        (name) => [name, at(first, name)] as const satisfies readonly [string, JsonValue | undefined],
      ),
    ]),
  });
  const walk = new ChainWalk(writer, chain);
  const spawnBefore = (number: number): void => {
    for (const child of chain.spawns.get(number) ?? []) {
      const begin = child.lines[0]?.entry;
      writer.spawned({
        run: run(child.sidechain),
        description: goalOf(child),
        at: begin === undefined ? undefined : sourceTime(begin),
      });
    }
  };
  for (const line of chain.lines) {
    spawnBefore(line.number);
    walk.line(line);
  }
  spawnBefore(0);
  return writer.done();
}

/** The first thing that the user said: no tool result, nothing that the program put in. */
function goalOf(chain: Chain): string | undefined {
  for (const { entry } of chain.lines) {
    if (textAt(entry, "type") !== "user" || at(entry, "isMeta") === true) continue;
    const text = contentText(at(entry, "message", "content"));
    if (text !== "") return text;
  }
  return undefined;
}

/** Writes the lines of one chain. The lines of one model message (same message id) are one exchange. */
class ChainWalk {
  readonly #writer: RunWriter;
  readonly #messages = new Map<string, SessionLine[]>();
  /** Per model message: the number of its first line, and how many calls it has made so far. */
  readonly #seen = new Map<string, { readonly index: number; calls: number }>();

  constructor(writer: RunWriter, chain: Chain) {
    this.#writer = writer;
    for (const line of chain.lines) {
      const id = messageId(line);
      this.#messages.set(id, [...(this.#messages.get(id) ?? []), line]);
    }
  }

  line(line: SessionLine): void {
    const { entry, number } = line;
    const type = textAt(entry, "type");
    const message = at(entry, "message");
    if (type === "assistant" && isObject(message)) {
      this.#assistant(line, message);
    } else if (type === "user" && isObject(message)) {
      this.#user(line, message);
    } else if (type === "summary" || type === "system") {
      this.#writer.message({
        index: number,
        role: type,
        content: at(entry, "summary") ?? at(entry, "content") ?? null,
        at: sourceTime(entry),
        extra: orAbsent(
          objectOf([
            ["leafUuid", at(entry, "leafUuid")],
            ["subtype", at(entry, "subtype")],
          ]),
        ),
      });
    } else {
      this.#writer.note(`line ${number} is no message; it is not imported`);
    }
  }

  #assistant(line: SessionLine, message: JsonObject): void {
    const id = messageId(line);
    let state = this.#seen.get(id);
    if (state === undefined) {
      state = { index: line.number, calls: 0 };
      this.#seen.set(id, state);
      this.#exchange(this.#messages.get(id) ?? [line], line);
    }
    for (const block of blocksOf(message)) {
      if (textAt(block, "type") !== "tool_use") continue;
      const tool = textAt(block, "name");
      if (tool === undefined) {
        this.#writer.note(`line ${line.number}: a tool_use block has no name; it is not imported`);
        continue;
      }
      this.#writer.call({
        index: state.index,
        position: state.calls,
        tool,
        args: argumentsOf(at(block, "input")),
        providerId: textAt(block, "id"),
        at: sourceTime(line.entry),
      });
      state.calls += 1;
    }
  }

  /** One exchange of all the lines of a model message: their blocks but the calls, the last line's usage. */
  #exchange(lines: readonly SessionLine[], first: SessionLine): void {
    const content: JsonValue[] = [];
    let calls = 0;
    for (const { entry } of lines) {
      for (const block of blocksOf(at(entry, "message"))) {
        if (textAt(block, "type") === "tool_use") calls += 1;
        else content.push(block);
      }
    }
    const message = at(lines.at(-1)?.entry, "message");
    const usage = at(message, "usage");
    this.#writer.exchange({
      index: first.number,
      model: textAt(message, "model"),
      content,
      calls,
      completedAt: sourceTime(first.entry),
      usage: {
        input: countAt(usage, "input_tokens"),
        output: countAt(usage, "output_tokens"),
        cached: countAt(usage, "cache_read_input_tokens"),
      },
      finishReason: textAt(message, "stop_reason"),
      requestId: textAt(first.entry, "requestId"),
      extra: orAbsent(
        objectOf([
          ["message_id", at(message, "id")],
          ["usage", usage],
          ["uuid", at(first.entry, "uuid")],
        ]),
      ),
    });
  }

  #user(line: SessionLine, message: JsonObject): void {
    const { entry, number } = line;
    const content = at(message, "content");
    const time = sourceTime(entry);
    const rest: JsonValue[] = [];
    let position = 0;
    for (const block of blocksOf(message)) {
      if (textAt(block, "type") !== "tool_result") {
        rest.push(block);
        continue;
      }
      const result = at(block, "content") ?? null;
      const structured = at(entry, "toolUseResult");
      const failed = at(block, "is_error") === true;
      this.#writer.result({
        index: number,
        position,
        hint: { providerId: textAt(block, "tool_use_id") },
        at: time,
        status: failed ? "failure" : "success",
        ...(failed ? { error: typeof result === "string" ? result : contentText(result) } : {}),
        ...(failed && typeof result === "string" ? {} : { result }),
        extra: orAbsent(
          objectOf([
            ["tool_use_result", structured === undefined || structured === result ? undefined : structured],
          ]),
        ),
      });
      position += 1;
    }
    if (content === undefined || content === null) {
      this.#writer.note(`line ${number} is a message without content`);
    } else if (rest.length > 0) {
      this.#writer.message({
        index: number,
        role: "user",
        content: typeof content === "string" ? content : rest,
        at: time,
        extra: orAbsent(
          objectOf([
            ["uuid", at(entry, "uuid")],
            ["is_meta", at(entry, "isMeta")],
            ["is_compact_summary", at(entry, "isCompactSummary")],
          ]),
        ),
      });
    }
  }
}

function messageId({ entry, number }: SessionLine): string {
  const id = textAt(entry, "message", "id");
  return textAt(entry, "type") === "assistant" && id !== undefined && id !== "" ? id : `line ${number}`;
}

/** The blocks of a message; a plain text is one block. */
function blocksOf(message: JsonValue | undefined): readonly JsonValue[] {
  const content = at(message, "content");
  if (typeof content === "string")
    return [
      objectOf([
        ["type", "text"],
        ["text", content],
      ]),
    ];
  return Array.isArray(content) ? content : [];
}
