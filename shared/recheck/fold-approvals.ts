/**
 * The approvals of a run, folded from its entries: the first ones whole, the rest counted (docs/recheck.md,
 * "Approvals").
 *
 * @module
 */
import type { EntryView } from "../entry/view.ts";
import { detached, FieldReader } from "./fields.ts";
import { MAX_APPROVALS } from "./limits.ts";
import type { ApprovalDecision, ApprovalRecord, ApprovalStatus, Problem } from "./model.ts";
import { NO_ROOM, type TextBudget } from "./text-budget.ts";

interface Draft extends ApprovalRecord {
  readonly decisions: ApprovalDecision[];
  problem: Problem | null;
}

const STATUS_BY_KIND: ReadonlyMap<string, ApprovalStatus> = new Map([
  ["approval.granted", "approved"],
  ["approval.denied", "rejected"],
  ["approval.expired", "expired"],
]);

const OF = "its approval.requested";

export class ApprovalFold {
  readonly #kept: Draft[] = [];
  readonly #byId = new Map<string, Draft>();
  readonly #budget: TextBudget;
  readonly #keep: boolean;
  /** All approvals of the run, kept or not. */
  count = 0;
  /** Requests whose id was there already. */
  repeated = 0;

  constructor(budget: TextBudget, keep: boolean) {
    this.#budget = budget;
    this.#keep = keep;
  }

  requested(entry: EntryView): void {
    const fields = new FieldReader(entry.action);
    const id = fields.string("approval_id");
    if (this.#byId.has(id)) {
      this.repeated++;
      return;
    }
    this.count++;
    // Beyond the ones that are read whole nothing is kept, not even the id.
    if (this.#kept.length >= MAX_APPROVALS) return;
    const kind = fields.string("kind");
    const capability = fields.text("capability") ?? null;
    const presentation = fields.text("presentation") ?? null;
    const hash = fields.string("hash");
    const expiresAt = fields.value("expires_at") ?? null;
    const problem = fields.problem(OF);
    const texts = [id, kind, capability ?? "", presentation ?? "", hash, expiresAt ?? ""];
    const room = this.#budget.take(this.#keep ? units(texts) : id.length);
    const whole = this.#keep && room;
    const kept = (text: string | null): string | null => (whole && text !== null ? detached(text) : null);
    const draft: Draft = {
      id: room ? detached(id) : "",
      stepId: entry.step === null ? null : detached(entry.step),
      kind: kept(kind) ?? "",
      capability: kept(capability),
      presentation: kept(presentation),
      hash: kept(hash) ?? "",
      createdAt: entry.occurred_at,
      expiresAt: kept(expiresAt),
      decisions: [],
      problem: problem ?? (room ? null : NO_ROOM),
    };
    this.#kept.push(draft);
    if (room && id !== "") this.#byId.set(draft.id, draft);
  }

  decided(entry: EntryView): void {
    const status = STATUS_BY_KIND.get(entry.kind);
    const fields = new FieldReader(entry.action);
    const draft = this.#byId.get(fields.string("approval_id"));
    if (status === undefined || draft === undefined) return;
    const by = fields.string("by");
    const note = fields.string("note");
    draft.problem ??= fields.problem(`its ${entry.kind}`);
    if (!this.#keep) return;
    if (!this.#budget.take(by.length + note.length + RECORD_UNITS)) {
      draft.problem ??= NO_ROOM;
      return;
    }
    const at = entry.occurred_at;
    draft.decisions.push({ seq: entry.seq, status, at, by: detached(by), note: detached(note) });
  }

  finish(): readonly ApprovalRecord[] {
    return this.#kept;
  }
}

/** What a decision costs beside its texts: nothing else bounds how many an approval gets. */
const RECORD_UNITS = 64;

function units(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0);
}
