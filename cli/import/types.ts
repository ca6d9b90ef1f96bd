/**
 * What an importer takes and gives. Importers are pure: bytes in, entries out, no I/O, so they run in a browser too.
 *
 * @module
 */
import type { CryptoPort } from "../../shared/crypto/port.ts";
import type { JsonValue } from "../../shared/json/value.ts";
import type { Policy } from "../../shared/recheck/policy.ts";

/** The formats, as `runseal import <format>` names them. */
export const IMPORT_FORMATS = [
  "openai-chat",
  "agentdojo",
  "inspect",
  "claude-code",
  "swe-agent",
  "langbot",
] as const;
export type ImportFormat = (typeof IMPORT_FORMATS)[number];

/** What a caller can choose. */
export interface ImportOptions {
  /**
   * Decides every call again: a `policy.evaluated` precedes each `tool.call.started`. The policy has to answer at once
   * and from the request alone (`readsView: false`), as `rules` does: there is no run to show it yet.
   */
  readonly policy?: Policy;
  /**
   * Specs of the tools, in agentrt's form or as OpenAI, MCP and AgentDojo write them. They go before the source's own.
   */
  readonly tools?: readonly JsonValue[];
  /** Is told what was passed over after the last run: what comes before a run is among that run's notes. */
  readonly onNote?: (note: string) => void;
  /** SHA-256; noble's unless a faster one is given. */
  readonly crypto?: Pick<CryptoPort, "sha256">;
}

/** A tool spec that entries name by its hash. */
export interface ImportedSpec {
  readonly hash: string;
  /** Canonical JSON text: what `PUT /v1/tools/{hash}` takes. */
  readonly text: string;
}

/** What was found in a run; for `--dry-run`, and for tests against the known numbers of the corpus. */
export interface ImportCounts {
  readonly messages: number;
  /** Model exchanges. */
  readonly exchanges: number;
  readonly calls: number;
  readonly results: number;
  /** Results with outcome `failure`. */
  readonly failures: number;
  /** Calls that the record ends without a result for. */
  readonly unanswered: number;
  /** Calls whose provider id is empty or absent. */
  readonly emptyIds: number;
  /** Provider ids that more than one call of the run has. */
  readonly repeatedIds: number;
}

/** One run, ready for `POST /v1/principals/{p}/entries`. */
export interface ImportedRun {
  readonly run: string;
  /** One line for people: untrusted text of the source, cut. */
  readonly title: string;
  /** Each one an entry as it is sent, as JSON text: numbers are the source's own literals. */
  readonly entries: readonly string[];
  /** The specs that the entries name, each once: without them in store the run cannot be re-checked. */
  readonly specs: readonly ImportedSpec[];
  /** What was lost, repaired or odd. Never contains content. */
  readonly notes: readonly string[];
  readonly counts: ImportCounts;
}
