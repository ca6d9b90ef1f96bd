/**
 * What the formats tell the writer of a run: messages, model exchanges, calls, outcomes, in the source's own order.
 *
 * @module
 */
import type { JsonValue } from "../../shared/json/value.ts";
import type { ResultHint } from "./pairing.ts";
import type { Arguments, JsonObject } from "./tree.ts";

/** Which run it is. */
export interface RunIdentity {
  /** The format, as the entries' names and `imported.system` give it. */
  readonly format: string;
  readonly run: string;
  readonly session?: string | undefined;
  readonly title: string;
}

/** Something said by anyone but the model. */
export interface SourceMessage {
  readonly index: number;
  readonly role: string;
  readonly content: JsonValue;
  readonly at?: string | undefined;
  readonly extra?: JsonObject | undefined;
}

/** One exchange with a model. */
export interface SourceExchange {
  readonly index: number;
  /** The model that answered; `requested` is the one that was asked, where the source tells them apart. */
  readonly model?: string | undefined;
  readonly requested?: string | undefined;
  /** What it answered, without its tool calls. */
  readonly content: JsonValue;
  /** How many calls it made. */
  readonly calls: number;
  readonly at?: string | undefined;
  readonly completedAt?: string | undefined;
  readonly usage?: {
    readonly input: number | undefined;
    readonly output: number | undefined;
    readonly cached: number | undefined;
  };
  readonly finishReason?: string | undefined;
  readonly requestId?: string | undefined;
  readonly error?: JsonValue | undefined;
  readonly extra?: JsonObject | undefined;
}

/** A tool call: message and place in it name it. */
export interface SourceCall {
  readonly index: number;
  readonly position: number;
  readonly tool: string;
  readonly args: Arguments;
  readonly providerId?: string | undefined;
  readonly at?: string | undefined;
  /** Further fields of the action. */
  readonly fields?: JsonObject | undefined;
  readonly extra?: JsonObject | undefined;
}

/** What became of a call. */
export interface SourceOutcome {
  readonly at?: string | undefined;
  readonly status: "success" | "failure" | "unknown";
  readonly result?: JsonValue | undefined;
  readonly error?: JsonValue | undefined;
  /** Further fields of the action. */
  readonly fields?: JsonObject | undefined;
  readonly extra?: JsonObject | undefined;
}

/** A result that has yet to be paired; index and position name it where it answers no call. */
export interface SourceResult extends SourceOutcome {
  readonly index: number;
  readonly position?: number | undefined;
  readonly hint: ResultHint;
}

/** How a run ended, as far as its source says. */
export interface SourceEnd {
  /** `completed`, `failed`, or the source's own word; undefined: it does not say. */
  readonly status?: string | undefined;
  readonly reason?: string | undefined;
  readonly error?: JsonValue | undefined;
  readonly at?: string | undefined;
  /** Scores and other judgements that the source carries: facts about the record, no proof of anything. */
  readonly labels?: JsonObject | undefined;
}
