/**
 * What the log remembers of requests that carried an Idempotency-Key (draft-ietf-httpapi-idempotency-key-header): the
 * answer, written in the transaction that stores the entries, so that a crash between commit and answer changes
 * nothing. A request without the header costs nothing here; one with it costs two rows (the answer and its index), and
 * two more when it is forgotten.
 *
 * @module
 */
import { equalSecret, fromHex, toHex } from "../../shared/bytes.ts";
import type { Row } from "../tile-store/sql.ts";
import { blob, bytesOf, firstRow } from "../tile-store/sql.ts";
import type { TileTree } from "../tile-store/tile-tree.ts";
import type { HeadView, IdempotentRequest, ItemOutcome, Unavailable } from "./types.ts";
import { unavailable } from "./types.ts";

/** Bounds of the memory of one log. An object, so that a test can lower them. */
export const ANSWER_LIMITS = {
  /** How long an answer is remembered. */
  keptMs: 24 * 3_600_000,
  answers: 1_000_000,
  /** A tenth of what a Durable Object stores. */
  bytes: 1024 ** 3,
};

/** What a remembered answer is made from again. */
export interface RememberedAnswer {
  readonly ids: readonly string[];
  readonly items: readonly ItemOutcome[];
  readonly head: HeadView;
  /** What the Worker gave to be kept with it. */
  readonly note: string;
}

/** An outcome as it is stored: its hash is in the tree. */
type StoredOutcome =
  | readonly ["stored" | "seen" | "erased", number]
  | readonly ["conflict", readonly string[]]
  | "not-stored";

const MISMATCH = unavailable("idempotency-mismatch", "the key came with another body or query before", 0);

/** A row's bytes beside its answer's, with those of its index. */
const ROW_BYTES = 160;
/** Answers that are forgotten at most when one is added: more than one, so that the memory shrinks. */
const FORGOTTEN_AT_ONCE = 16;
const LONGEST_RETRY_SECONDS = 3600;

const SCHEMA = `
CREATE TABLE IF NOT EXISTS answers (
  n INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, fingerprint BLOB NOT NULL, at_ms INTEGER NOT NULL,
  bytes_before INTEGER NOT NULL, bytes_after INTEGER NOT NULL, answer TEXT NOT NULL);
`;

export class AnswerMemory {
  readonly #sql: SqlStorage;
  readonly #tree: TileTree;
  /** Fingerprints of the requests that are being answered, by key. */
  readonly #inFlight = new Map<string, string>();

  constructor(sql: SqlStorage, tree: TileTree) {
    this.#sql = sql;
    this.#tree = tree;
    this.#sql.exec(SCHEMA);
  }

  /**
   * Begins a request: what it was answered before, why it is refused, or null where it is the first of its key. Then
   * `end` must follow.
   */
  begin(request: IdempotentRequest, nowMs: number): RememberedAnswer | Unavailable | null {
    const running = this.#inFlight.get(request.key);
    if (running !== undefined) {
      if (!isSame(fromHex(running), request)) return MISMATCH;
      return unavailable("idempotency-in-flight", "a request with this Idempotency-Key is being answered");
    }
    const known = this.recall(request, nowMs);
    if (known !== null) return known;
    const full = this.#refusal(nowMs);
    if (full !== null) return full;
    this.#inFlight.set(request.key, request.fingerprint);
    return null;
  }

  end(request: IdempotentRequest): void {
    this.#inFlight.delete(request.key);
  }

  /** The answer that the request got before; a refusal where the key stands for another request; else null. */
  recall(request: IdempotentRequest, nowMs: number): RememberedAnswer | Unavailable | null {
    const row = firstRow(
      this.#sql,
      "SELECT fingerprint, at_ms, answer FROM answers WHERE key = ?",
      blob(fromHex(request.key)),
    );
    if (row === undefined || isForgotten(row, nowMs)) return null;
    if (!isSame(bytesOf(row.fingerprint), request)) return MISMATCH;
    const stored = JSON.parse(String(row.answer)) as Omit<RememberedAnswer, "items"> & {
      readonly items: readonly StoredOutcome[];
    };
    return { ...stored, items: stored.items.map((item) => this.#outcome(item)) };
  }

  /** Stores an answer; runs inside the transaction of the entries that it is about. */
  remember(request: IdempotentRequest, answer: Omit<RememberedAnswer, "note">, nowMs: number): void {
    const key = blob(fromHex(request.key));
    const { ids, head } = answer;
    const text = JSON.stringify({ ids, head, note: request.note, items: answer.items.map(storedOutcome) });
    this.#forget(key, nowMs);
    const last = firstRow(this.#sql, "SELECT bytes_after FROM answers ORDER BY n DESC LIMIT 1");
    const before = Number(last?.bytes_after ?? 0);
    this.#sql.exec(
      "INSERT INTO answers (key, fingerprint, at_ms, bytes_before, bytes_after, answer) VALUES (?, ?, ?, ?, ?, ?)",
      key,
      blob(fromHex(request.fingerprint)),
      nowMs,
      before,
      before + ROW_BYTES + text.length,
      text,
    );
  }

  /** Deletes the oldest answers whose time is over, a few at once, and an old one of this key. */
  #forget(key: ArrayBuffer, nowMs: number): void {
    const oldest = firstRow(this.#sql, "SELECT at_ms FROM answers ORDER BY n LIMIT 1");
    if (oldest === undefined || !isForgotten(oldest, nowMs)) return;
    const over = nowMs - ANSWER_LIMITS.keptMs;
    this.#sql.exec("DELETE FROM answers WHERE key = ? AND at_ms <= ?", key, over);
    this.#sql.exec(
      "DELETE FROM answers WHERE n IN (SELECT n FROM answers ORDER BY n LIMIT ?) AND at_ms <= ?",
      FORGOTTEN_AT_ONCE,
      over,
    );
  }

  /** To forget an answer before its time would store its entries twice: a full memory takes no further key. */
  #refusal(nowMs: number): Unavailable | null {
    const first = firstRow(this.#sql, "SELECT n, at_ms, bytes_before FROM answers ORDER BY n LIMIT 1");
    const last = firstRow(this.#sql, "SELECT n, bytes_after FROM answers ORDER BY n DESC LIMIT 1");
    if (first === undefined || last === undefined || isForgotten(first, nowMs)) return null;
    const answers = Number(last.n) - Number(first.n) + 1;
    const bytes = Number(last.bytes_after) - Number(first.bytes_before);
    if (answers < ANSWER_LIMITS.answers && bytes < ANSWER_LIMITS.bytes) return null;
    const seconds = Math.ceil((Number(first.at_ms) + ANSWER_LIMITS.keptMs - nowMs) / 1000);
    const detail =
      "the log remembers as many Idempotency-Keys as it can: send without one, each entry with an id";
    return unavailable("idempotency-full", detail, Math.max(1, Math.min(seconds, LONGEST_RETRY_SECONDS)));
  }

  #outcome(item: StoredOutcome): ItemOutcome {
    if (item === "not-stored") return { status: "not-stored" };
    if (item[0] === "conflict") return { status: "conflict", differs: item[1] };
    const [status, seq] = item;
    return { status, seq, hash: toHex(this.#tree.leafHashes(seq - 1, seq)) };
  }
}

/** In a time that tells nothing: a fingerprint is a keyed hash of what was sent (workers/http/fingerprint.ts). */
function isSame(fingerprint: Uint8Array, request: IdempotentRequest): boolean {
  return equalSecret(fingerprint, fromHex(request.fingerprint));
}

function isForgotten(row: Row, nowMs: number): boolean {
  return Number(row.at_ms) <= nowMs - ANSWER_LIMITS.keptMs;
}

function storedOutcome(item: ItemOutcome): StoredOutcome {
  if (item.status === "not-stored") return "not-stored";
  return item.status === "conflict" ? ["conflict", item.differs] : [item.status, item.seq];
}
