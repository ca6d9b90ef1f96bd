/**
 * What the audit's tests share: entries as the log would show them, made by the real ingest from the texts that a sender
 * sends, and a writer of small logs.
 *
 * @module
 */
import { nativeCrypto } from "../../../native/crypto.ts";
import { splitSections } from "../../../shared/entry/content.ts";
import { parseBatch } from "../../../shared/entry/parse-batch.ts";
import { parseRow } from "../../../shared/entry/row.ts";
import type { EntryView, FieldViews, Missing } from "../../../shared/entry/view.ts";
import { parseTime } from "../../../shared/time.ts";

/** When the logs of these tests begin; entries follow a second apart. */
export const EPOCH = 1_790_845_200_000_000_000n;
export const SECOND = 1_000_000_000n;

/** A hash that tells entries apart. */
export const hashOf = (seq: number): string => seq.toString(16).padStart(64, "a");

/** The entry behind a text of "entry in", validated and brought into canonical form by the ingest. */
export function viewOf(text: string, seq: number): EntryView {
  const { entries } = parseBatch(new TextEncoder().encode(text), "json", {
    crypto: nativeCrypto,
    credential: new Uint8Array(16),
    defaultReporter: "agent",
    writer: "client",
    random: (count) => new Uint8Array(count),
    newId: () => `id-${seq}`,
  });
  const parsed = entries[0];
  if (parsed === undefined || !parsed.ok)
    throw new Error(`refused: ${JSON.stringify(parsed?.problem)} ${text.slice(0, 200)}`);
  const sections = splitSections(parseRow(parsed.entry.row).values ?? "{}");
  const sent = JSON.parse(text) as Record<string, string> & {
    actor?: EntryView["actor"];
    authorization?: { type: string };
    outcome?: { status: string };
  };
  const fields = (name: "action" | "authorization" | "outcome"): FieldViews =>
    new Map([...(sections.get(name) ?? [])].map(([field, value]) => [field, { text: value }]));
  return {
    seq,
    hash: hashOf(seq),
    id: sent.id ?? `id-${seq}`,
    kind: sent.kind ?? "",
    recorded_at: EPOCH + BigInt(seq) * SECOND,
    occurred_at: sent.occurred_at === undefined ? null : parseTime(sent.occurred_at),
    session: sent.session ?? null,
    run: sent.run ?? null,
    step: sent.step ?? null,
    call: sent.call ?? null,
    actor: sent.actor ?? null,
    action: fields("action"),
    authorization:
      sent.authorization === undefined
        ? null
        : { type: sent.authorization.type, fields: fields("authorization") },
    outcome: sent.outcome === undefined ? null : { status: sent.outcome.status, fields: fields("outcome") },
  };
}

export interface Parts {
  readonly run?: string | null;
  readonly step?: string;
  readonly call?: string;
  readonly occurred_at?: string;
  readonly action?: Readonly<Record<string, unknown>>;
  readonly authorization?: Readonly<Record<string, unknown>>;
  readonly outcome?: Readonly<Record<string, unknown>>;
}

/** Writes entries, of one run unless told otherwise. */
export class TestLog {
  readonly entries: EntryView[] = [];
  #seq = 0;

  add(kind: string, { run = "r1", ...parts }: Parts = {}): EntryView {
    this.#seq += 1;
    const sent = { kind, ...(run === null ? {} : { run }), action: {}, ...parts };
    const entry = viewOf(JSON.stringify(sent), this.#seq);
    this.entries.push(entry);
    return entry;
  }
}

/** The entry with a field gone. */
export function without(entry: EntryView, name: string, why: Missing = "erased"): EntryView {
  const cut = (fields: FieldViews): FieldViews =>
    fields.has(name) ? new Map([...fields, [name, { missing: why }]]) : fields;
  return {
    ...entry,
    action: cut(entry.action),
    outcome: entry.outcome === null ? null : { ...entry.outcome, fields: cut(entry.outcome.fields) },
  };
}

/** The entry after the erasure of its content. */
export function erased(entry: EntryView): EntryView {
  const gone = (fields: FieldViews): FieldViews =>
    new Map([...fields.keys()].map((name) => [name, { missing: "erased" }]));
  return {
    ...entry,
    action: gone(entry.action),
    authorization:
      entry.authorization === null
        ? null
        : { ...entry.authorization, fields: gone(entry.authorization.fields) },
    outcome: entry.outcome === null ? null : { ...entry.outcome, fields: gone(entry.outcome.fields) },
  };
}

/** The entry a reference names. */
export const ref = ({ seq, hash }: EntryView): { seq: number; hash: string } => ({ seq, hash });
