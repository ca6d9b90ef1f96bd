/**
 * Writes one run: the formats say what happened in their own order, and this gives it the kinds, names and fields of
 * the log. Every entry says reporter `import`; what the source does not say is absent.
 *
 * @module
 */
import { type JsonValue, jsonText, parseJsonValue } from "../../shared/json/value.ts";
import type { ImportContext } from "./context.ts";
import { type DraftEntry, entryText } from "./entries.ts";
import { evaluate, type KnownCounts, unknownCounts, viewOf, viewValue } from "./evaluate.ts";
import type { Losses } from "./lenient.ts";
import { callName, stepName } from "./names.ts";
import { OpenCalls } from "./pairing.ts";
import type {
  RunIdentity,
  SourceCall,
  SourceEnd,
  SourceExchange,
  SourceMessage,
  SourceOutcome,
  SourceResult,
} from "./source.ts";
import { SpecShelf } from "./specs.ts";
import { Tally } from "./tally.ts";
import { isObject, type JsonObject, numberOf, objectOf, orAbsent } from "./tree.ts";
import type { ImportedRun } from "./types.ts";

/** UTF-16 units of a label of the catalogue (shared/kinds/fields.ts). */
const MAX_LABEL = 512;
const MAX_TITLE = 120;
/** A decision can hold the arguments twice, and has to fit a field of 1 MiB. A re-check reads 65,536 characters. */
const MAX_EVALUATED_CHARS = 150_000;

export class RunWriter {
  readonly #identity: RunIdentity;
  readonly #context: ImportContext;
  readonly #losses: Losses;
  readonly #specs: SpecShelf;
  readonly #open = new OpenCalls();
  readonly #tally = new Tally();
  readonly #drafts: { readonly draft: DraftEntry; readonly place: string }[] = [];
  readonly #notes: string[] = [];
  readonly #tools = new Map<string, { readonly tool: string; readonly providerId: string | undefined }>();
  #created: { goal: string; draft: DraftEntry } | undefined;
  #evaluations = 0;

  constructor(identity: RunIdentity, context: ImportContext, losses: Losses) {
    this.#identity = identity;
    this.#context = context;
    this.#losses = losses;
    this.#specs = new SpecShelf(context.crypto);
    if (!this.#specs.add(context.options.tools ?? [])) this.note("a tool spec that was given cannot be read");
  }

  /** Something that was lost or is odd; said once. */
  note(note: string): void {
    if (!this.#notes.includes(note)) this.#notes.push(note);
  }

  created(created: {
    readonly goal?: string | undefined;
    readonly at?: string | undefined;
    /** The source's own tool specs, in any form. */
    readonly specs?: readonly JsonValue[];
    readonly authorization?: JsonValue | undefined;
    readonly extra?: JsonObject | undefined;
  }): void {
    if (!this.#specs.add(created.specs ?? []))
      this.note("a tool spec of the source cannot be read; it is not imported");
    const action = objectOf([
      ["goal", created.goal],
      // The specs that are known: none is an empty list. Those that a policy's evaluations need are not among them.
      ["tools", this.#specs.known.map(({ hash }) => hash)],
      ["authorization", created.authorization],
      ["imported.system", this.#identity.format],
      ["extra", created.extra === undefined ? undefined : orAbsent(created.extra)],
    ]);
    this.#created = { goal: created.goal ?? "", draft: { kind: "run.created", at: created.at, action } };
  }

  message(message: SourceMessage): void {
    this.#tally.messages += 1;
    const content = objectOf([
      ["role", message.role],
      ["content", message.content],
    ]);
    this.#add({
      kind: "message.completed",
      step: stepName(message.index),
      at: message.at,
      action: objectOf([
        ["message", content],
        ["extra", message.extra],
      ]),
    });
  }

  exchange(exchange: SourceExchange): void {
    const step = stepName(exchange.index);
    const extra: JsonObject = new Map(exchange.extra ?? []);
    const model = this.#label("model", exchange.model, extra);
    const asked = this.#label("requested", exchange.requested ?? exchange.model, extra);
    const before = numberOf(this.#tally.messages + this.#tally.exchanges + this.#tally.results);
    this.#add({
      kind: "model.dispatched",
      step,
      at: exchange.at,
      action: objectOf([
        ["model", asked],
        ["extra", objectOf([["messages", before]])],
      ]),
    });
    this.#tally.exchange(exchange.usage);
    const failed = exchange.error !== undefined;
    extra.set("tool_calls", numberOf(exchange.calls));
    this.#add({
      kind: failed ? "model.failed" : "model.completed",
      step,
      at: exchange.completedAt,
      action: objectOf([
        ["model", model],
        ["input_tokens", countOf(exchange.usage?.input)],
        ["output_tokens", countOf(exchange.usage?.output)],
        ["cached_input_tokens", countOf(exchange.usage?.cached)],
        ["finish_reason", failed ? undefined : this.#label("finish_reason", exchange.finishReason, extra)],
        ["provider_request_id", this.#label("provider_request_id", exchange.requestId, extra)],
        ["extra", orAbsent(extra)],
      ]),
      outcome: failed
        ? objectOf([
            ["status", "failure"],
            ["error", asText(exchange.error)],
          ])
        : objectOf([
            ["status", "success"],
            ["result", exchange.content ?? undefined],
          ]),
    });
  }

  /** Writes the policy's decision, where there is one, and the call's start. Gives the call's name. */
  call(call: SourceCall): string {
    const name = callName(call.index, call.position);
    const extra: JsonObject = new Map(call.extra ?? []);
    if (call.args.text !== undefined) extra.set("args_text", call.args.text);
    const tool = this.#label("tool", call.tool, extra) ?? "";
    const providerId = this.#label("tool_call_id", call.providerId, extra);
    this.#evaluate(name, tool, call.args.args);
    this.#tally.call(call.providerId);
    this.#tools.set(name, { tool, providerId });
    this.#open.add({
      call: name,
      tool: call.tool,
      argsText: jsonText(call.args.args),
      providerId: call.providerId ?? "",
      group: call.index,
    });
    this.#add({
      kind: "tool.call.started",
      step: name,
      call: name,
      at: call.at,
      action: objectOf([
        ["tool", tool],
        ["args", call.args.args],
        ["spec_hash", this.#specs.get(tool)?.hash],
        ["tool_call_id", providerId],
        ...(call.fields ?? []),
        ["extra", orAbsent(extra)],
      ]),
    });
    return name;
  }

  /** Without a time: the policy is asked now, not when the run was. */
  #evaluate(name: string, tool: string, args: JsonValue): void {
    const { policy } = this.#context.options;
    const spec = policy === undefined ? undefined : this.#specs.getOrMake(tool);
    if (policy === undefined) return;
    if (spec === undefined) {
      this.note("a call without a tool's name cannot be put to a policy");
      return;
    }
    if (jsonText(args).length > MAX_EVALUATED_CHARS) {
      this.note("a call with very long arguments was not put to the policy");
      return;
    }
    const counts: KnownCounts = this.#tally.known();
    const view = viewOf(counts);
    const call = { run: this.#identity.run, step: name, tool, args, spec: spec.spec };
    const evaluation = evaluate(policy, call, view, this.#created?.goal ?? "");
    if (!evaluation.ok) {
      this.note(`the policy failed on a call of the run: ${evaluation.why}`);
      return;
    }
    // Numbered apart, so that the other entries keep their names whether there is a policy or not.
    this.#evaluations += 1;
    const place = `policy ${this.#evaluations}`;
    const action = objectOf([
      ["tool", tool],
      ["args", args],
      ["spec_hash", spec.hash],
      ["policy_id", policy.id === "" ? undefined : policy.id],
      ["decision", evaluation.decision],
      ["view", viewValue(view)],
      [
        "extra",
        objectOf([
          ["decided", "at import"],
          ["not_counted", unknownCounts(counts)],
        ]),
      ],
    ]);
    this.#drafts.push({
      draft: { kind: "policy.evaluated", step: name, call: name, action },
      place,
    });
  }

  /** Pairs a result with its call, and writes it. */
  result(result: SourceResult): void {
    const taken = this.#open.take(result.hint);
    if (taken?.by === "order") this.#tally.pairedByOrder += 1;
    if (taken?.by === "order-despite-id")
      this.note("a result's provider id fits no open call; it was paired by its name");
    if (taken !== undefined) {
      const { argsText } = result.hint;
      const other = argsText !== undefined && argsText !== taken.call.argsText;
      const extra: JsonObject = new Map(result.extra ?? []);
      // What the tool says it was called with, where that is not what the model asked for.
      if (other) extra.set("result_args", parseJsonValue(argsText));
      this.#complete(taken.call.call, { ...result, extra }, result.hint.providerId);
      return;
    }
    // Nobody made this call, as far as the record goes: the completion stands alone under a name of its own.
    this.#tally.orphans += 1;
    const name = callName(result.index, result.position ?? 0);
    const extra: JsonObject = new Map();
    const tool = this.#label("tool", result.hint.tool, extra) ?? "";
    this.#tools.set(name, { tool, providerId: this.#label("tool_call_id", result.hint.providerId, extra) });
    this.#complete(name, result, undefined);
  }

  /** Writes the outcome of a call that the source itself names. */
  complete(outcome: SourceOutcome & { readonly call: string }): void {
    this.#open.close(outcome.call);
    this.#complete(outcome.call, outcome, undefined);
  }

  #complete(call: string, outcome: SourceOutcome, answeredId: string | undefined): void {
    const known = this.#tools.get(call);
    const extra: JsonObject = new Map(outcome.extra ?? []);
    // The provider's id of the result, where it is another one than the call's.
    if (answeredId !== undefined && answeredId !== (known?.providerId ?? ""))
      extra.set("result_id", answeredId);
    this.#tally.result(outcome.status);
    this.#add({
      kind: "tool.call.completed",
      step: call,
      call,
      at: outcome.at,
      action: objectOf([
        ["tool", known?.tool ?? ""],
        ["tool_call_id", known?.providerId],
        ...(outcome.fields ?? []),
        ["extra", orAbsent(extra)],
      ]),
      outcome: objectOf([
        ["status", outcome.status],
        ["result", outcome.result],
        ["error", outcome.error === undefined ? undefined : asText(outcome.error)],
      ]),
    });
  }

  /** A call of the host, within a tool's call where that is known. */
  host(host: {
    readonly kind: "process.spawn" | "file.read" | "file.write";
    readonly action: Readonly<Record<string, string>>;
    readonly call?: string | undefined;
    readonly at?: string | undefined;
    readonly failed: boolean;
    readonly extra?: JsonObject | undefined;
  }): void {
    this.#add({
      kind: host.kind,
      step: host.call,
      call: host.call,
      at: host.at,
      action: objectOf([...Object.entries(host.action), ["extra", host.extra]]),
      outcome: objectOf([["status", host.failed ? "failure" : "success"]]),
    });
  }

  /** Another agent began, in a run of its own or in this one. */
  spawned(child: {
    readonly run?: string | undefined;
    readonly description?: string | undefined;
    readonly at?: string | undefined;
    readonly extra?: JsonObject | undefined;
  }): void {
    this.#add({
      kind: "agent.spawned",
      at: child.at,
      action: objectOf([
        ["child_run_id", child.run],
        ["description", child.description],
        ["extra", child.extra],
      ]),
    });
  }

  /** An entry that a format maps by itself. */
  raw(draft: DraftEntry): void {
    this.#add(draft);
  }

  /** The end, where the source says one; else a `run.status` with its labels; nothing where it has neither. */
  end(end: SourceEnd): void {
    const labels = end.labels === undefined ? undefined : orAbsent(end.labels);
    const extra = labels === undefined ? undefined : objectOf([["labels", labels]]);
    const shared: (readonly [string, JsonValue | undefined])[] = [
      ["steps", numberOf(this.#tally.calls)],
      ["extra", extra],
    ];
    if (end.status === "completed") {
      const action = objectOf([["reason", cutLabel(end.reason)], ...shared]);
      this.#add({ kind: "run.completed", at: end.at, action });
    } else if (end.status === "failed") {
      const error = end.error === undefined ? undefined : asText(end.error);
      const action = objectOf([["reason", cutLabel(end.reason)], ["error", error], ...shared]);
      this.#add({ kind: "run.failed", at: end.at, action });
    } else if (end.status !== undefined || extra !== undefined) {
      this.#add({
        kind: "run.status",
        at: end.at,
        action: objectOf([
          ["status", cutLabel(end.status) ?? "unknown"],
          ["reason", end.status === undefined ? "the source does not say how the run ended" : end.reason],
          ["extra", extra],
        ]),
      });
    }
  }

  /** The whole run. */
  done(): ImportedRun {
    const { format, run, session, title } = this.#identity;
    const drafts = [...this.#drafts];
    if (this.#created !== undefined) drafts.unshift({ draft: this.#created.draft, place: "created" });
    const entries = drafts.map(({ draft, place }) =>
      entryText(draft, { format, run, session, place }, this.#losses, this.#context),
    );
    const counts = this.#tally.counts(this.#open.rest.length);
    if (this.#losses.count > 0)
      this.note(`${this.#losses.count} values could not be kept exactly (extra.lossy)`);
    const made = this.#specs.made.length;
    if (made > 0) this.note(`${made} of the tools have no spec: the evaluations name an empty one`);
    return {
      run,
      title: title.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu, " ").slice(0, MAX_TITLE),
      entries,
      specs: [...this.#specs.known, ...this.#specs.made].map(({ hash, spec }) => ({ hash, text: spec.text })),
      notes: [...this.#context.takeNotes(), ...this.#notes, ...this.#tally.notes(this.#open.rest.length)],
      counts,
    };
  }

  #add(draft: DraftEntry): void {
    this.#drafts.push({ draft, place: String(this.#drafts.length - this.#evaluations) });
  }

  /** A label as the catalogue takes it; a longer one is cut, and whole in `extra`. */
  #label(name: string, value: string | undefined, extra: JsonObject): string | undefined {
    if (value === undefined || value.length <= MAX_LABEL) return value;
    extra.set(name, value);
    return cutLabel(value);
  }
}

function cutLabel(value: string | undefined): string | undefined {
  return value?.slice(0, MAX_LABEL).replace(/\p{Cs}$/u, "");
}

function countOf(count: number | undefined): JsonValue | undefined {
  return count === undefined ? undefined : numberOf(count);
}

/** The text of an error: a text itself, an object's message, or its JSON. */
function asText(value: JsonValue | undefined): string {
  if (typeof value === "string") return value;
  const message = isObject(value) ? value.get("message") : undefined;
  return typeof message === "string" ? message : jsonText(value ?? null);
}
