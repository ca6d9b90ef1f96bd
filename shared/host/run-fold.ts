/**
 * The fold of host calls into one `host.run` entry (docs/host-calls.md). A host that makes thousands of calls writes one
 * entry for a run of them: how many, when the first and last were, a tally by class and outcome, and a hash over all of
 * them in their order. Whoever has the calls can compute it again; nobody can leave one out, add one, or turn two
 * around and get the same hash.
 *
 * The order and the members follow the seed system's host-call lane, with SHA-256 and
 * deterministic CBOR in place of its own encoding.
 *
 * @module
 */
import { toHex } from "../bytes.ts";
import { encodeCbor } from "../cbor/encode.ts";
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";
import { canonicalJson } from "../json/canonical.ts";
import { formatTime } from "../time.ts";

export const CALL_OUTCOMES = ["ok", "failed", "denied"] as const;
export type CallOutcome = (typeof CALL_OUTCOMES)[number];

/** One call of the host. */
export interface HostCall {
  /** What sort of call: a kind's name such as `file.read`, or the host's own word. */
  readonly class: string;
  /** Its fields by name, each as JSON text; what is hashed is the canonical form. */
  readonly fields: ReadonlyMap<string, string>;
  readonly outcome: CallOutcome;
  /** More on the outcome, in words; null where there is none. */
  readonly detail: string | null;
  /** Nanoseconds since the epoch. */
  readonly at: bigint;
}

export interface TallyLine {
  readonly class: string;
  readonly outcome: CallOutcome;
  readonly count: number;
  /** The fields of the first such call, as canonical JSON text. */
  readonly first: string;
  readonly firstDetail: string | null;
}

export interface HostCallSummary {
  readonly count: number;
  /** Nanoseconds since the epoch, of the first and the last call in their order. */
  readonly firstAt: bigint;
  readonly lastAt: bigint;
  readonly fold: Uint8Array;
  /** One line for each class and outcome, in the order in which they first came. */
  readonly tally: readonly TallyLine[];
}

type Sha256 = Pick<CryptoPort, "sha256">;

/** Hash of one call. */
export function callDigest(crypto: Sha256, call: HostCall): Uint8Array {
  const fields = new Map([...call.fields].map(([name, text]) => [name, canonicalJson(text)] as const));
  return crypto.sha256(
    encodeCbor(["runseal.host-call.v1", call.class, fields, call.outcome, call.detail, call.at]),
  );
}

/** Takes calls one by one, in memory that grows with the classes and not with the calls. */
export class HostCallFold {
  readonly #crypto: Sha256;
  readonly #tally = new Map<string, TallyLine>();
  #count = 0;
  #firstAt = 0n;
  #lastAt = 0n;
  #fold: Uint8Array = new Uint8Array(32);

  constructor(crypto: Sha256) {
    this.#crypto = crypto;
  }

  get count(): number {
    return this.#count;
  }

  /** Throws `JsonError` where a field is no JSON. */
  add(call: HostCall): void {
    const digest = callDigest(this.#crypto, call);
    this.#fold = this.#crypto.sha256(encodeCbor(["runseal.host-call-fold.v1", this.#fold, digest]));
    if (this.#count === 0) this.#firstAt = call.at;
    this.#lastAt = call.at;
    this.#count += 1;
    const name = JSON.stringify([call.class, call.outcome]);
    const line = this.#tally.get(name);
    this.#tally.set(
      name,
      line === undefined
        ? {
            class: call.class,
            outcome: call.outcome,
            count: 1,
            first: objectText(call.fields),
            firstDetail: call.detail,
          }
        : { ...line, count: line.count + 1 },
    );
  }

  /** What was folded. Throws `RunsealError("empty-fold")` where nothing was. */
  summary(): HostCallSummary {
    if (this.#count === 0) throw new RunsealError("empty-fold", "a fold is made of at least one call");
    return {
      count: this.#count,
      firstAt: this.#firstAt,
      lastAt: this.#lastAt,
      fold: this.#fold,
      tally: [...this.#tally.values()],
    };
  }
}

/** The field `calls` of a `host.run` entry, as JSON text: the members of one section of docs/kinds.md. */
export function callsText(summary: HostCallSummary): string {
  const tally = summary.tally.map((line) => {
    const detail = line.firstDetail === null ? "" : `,"first_detail":${JSON.stringify(line.firstDetail)}`;
    return `{"class":${JSON.stringify(line.class)},"count":${line.count},"first":${line.first}${detail},"outcome":"${line.outcome}"}`;
  });
  return canonicalJson(
    `{"count":${summary.count},"first_at":"${formatTime(summary.firstAt)}","last_at":"${formatTime(summary.lastAt)}","fold":"${toHex(summary.fold)}","tally":[${tally.join(",")}]}`,
  );
}

function objectText(fields: ReadonlyMap<string, string>): string {
  return canonicalJson(`{${[...fields].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`);
}
