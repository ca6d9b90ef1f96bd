/**
 * The approvals of a log: by id, by the entries that record them, and by the calls and steps that wait for them
 * (docs/audit.md "Approvals").
 *
 * @module
 */
import type { EntryView } from "../entry/view.ts";
import { hashText, type Sha256 } from "../recheck/hash.ts";
import { type Approval, argsOf, capabilityOf, subjectOf } from "./approval-link.ts";
import { BoundedMap } from "./bounded-map.ts";
import { missingOf, objectAt, stringAt } from "./fields.ts";
import { type EntryRef, type FindingList, refOf } from "./finding.ts";

const MAX_APPROVALS = 4096;
/** UTF-16 units of capabilities and presentations that are held. */
const MAX_SUBJECT_TEXT = 4_194_304;
const TOO_MANY = `approvals beyond ${MAX_APPROVALS}`;

export class ApprovalIndex {
  readonly #list: FindingList;
  readonly #crypto: Sha256;
  readonly #byId: BoundedMap<string, Approval>;
  /** The approvals that were requested in one place: a call, a step. */
  readonly #byPlace: BoundedMap<string, Approval[]>;
  #subjectText = 0;

  constructor(list: FindingList, crypto: Sha256) {
    this.#list = list;
    this.#crypto = crypto;
    this.#byId = new BoundedMap(MAX_APPROVALS, (_, approval) => {
      this.release(approval);
      list.limit(TOO_MANY);
    });
    this.#byPlace = new BoundedMap(2 * MAX_APPROVALS, () => list.limit(TOO_MANY));
  }

  get(id: string): Approval | undefined {
    return this.#byId.get(id);
  }

  values(): Iterable<Approval> {
    return this.#byId.values();
  }

  /** Adds the approval that an `approval.requested` asks for. An id that is there already is another one from now on. */
  request(entry: EntryView, id: string): void {
    const subject = subjectOf(entry);
    const { tools, args } = capabilityOf(subject.capability);
    const before = this.#byId.get(id);
    if (before !== undefined) this.release(before);
    const hasRoom = this.#makeRoom(subject.capability.length + subject.presentation.length);
    const approval: Approval = {
      id,
      request: refOf(entry),
      call: entry.call,
      tools,
      subject: hasRoom ? subject : null,
      status: "pending",
      decision: null,
      scope: null,
      earlyAct: null,
      usedBy: null,
    };
    this.#byId.set(id, approval);
    const requests = args === undefined ? [] : tools.map((tool) => this.#requestKey(tool, args));
    for (const place of placesOf(entry, requests)) {
      const here = this.#byPlace.get(place) ?? [];
      if (here.length >= MAX_APPROVALS) this.#list.limit(TOO_MANY);
      else this.#byPlace.set(place, [...here, approval]);
    }
  }

  #makeRoom(size: number): boolean {
    if (this.#subjectText + size > MAX_SUBJECT_TEXT)
      for (const approval of this.#byId.values()) if (approval.usedBy !== null) this.release(approval);
    const hasRoom = this.#subjectText + size <= MAX_SUBJECT_TEXT;
    if (hasRoom) this.#subjectText += size;
    else this.#list.limit(`text of approvals beyond ${MAX_SUBJECT_TEXT}`);
    return hasRoom;
  }

  /** Forgets the texts of an approval that no act will be compared with. */
  release(approval: Approval): void {
    const { subject } = approval;
    if (subject === null) return;
    this.#subjectText -= subject.capability.length + subject.presentation.length;
    approval.subject = null;
  }

  #requestKey(tool: string, args: string): string {
    return `request ${hashText(this.#crypto, args)} ${tool}`;
  }

  /** The approval that the act's authorization names, by id, or by the entry that records it, or by both. */
  named(act: EntryView): Approval | undefined {
    const fields = act.authorization?.fields ?? new Map();
    for (const field of ["approval_id", "approval_entry"]) {
      const missing = missingOf(fields, field);
      if (missing !== null) this.#list.notChecked(refOf(act), `authorization.${field}`, missing);
    }
    const id = stringAt(fields, "approval_id");
    const byId = id === undefined ? undefined : this.#byId.get(id);
    const named = objectAt(fields, "approval_entry");
    if (named === undefined) return byId;
    const isIt = (record: EntryRef | null): boolean =>
      record !== null && named.get("seq") === BigInt(record.seq) && named.get("hash") === record.hash;
    const matches = (approval: Approval): boolean => isIt(approval.decision) || isIt(approval.request);
    if (id !== undefined) return byId !== undefined && matches(byId) ? byId : undefined;
    for (const approval of this.#byId.values()) if (matches(approval)) return approval;
    return undefined;
  }

  /**
   * The approvals that were requested for the act's call; else those for its tool in its step; else, where neither
   * side has a call or a step, those for the same request. The last one comes first.
   */
  linked(act: EntryView): Approval[] {
    const tool = stringAt(act.action, "tool");
    const args = argsOf(act);
    const requests = tool === undefined || args === undefined ? [] : [this.#requestKey(tool, args)];
    for (const place of [...placesOf(act, []), ...requests]) {
      const here = (this.#byPlace.get(place) ?? []).filter(({ call, tools }) => {
        if (call !== null && act.call !== null) return call === act.call;
        return tools.length === 0 || tool === undefined || tools.includes(tool);
      });
      if (here.length > 0) return here.reverse();
    }
    return [];
  }
}

function placesOf({ call, step }: EntryView, requests: readonly string[]): readonly string[] {
  if (call === null && step === null) return requests;
  return [...(call === null ? [] : [`call ${call}`]), ...(step === null ? [] : [`step ${step}`])];
}
