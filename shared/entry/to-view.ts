/**
 * From a stored entry to the view that folds read.
 *
 * @module
 */
import { toHex } from "../bytes.ts";
import type { SectionName } from "./commitment.ts";
import { splitContent } from "./content.ts";
import type { Leaf } from "./leaf.ts";
import { sectionCommitments } from "./leaf.ts";
import type { EntryView, FieldView, FieldViews } from "./view.ts";

/**
 * The view of an entry.
 *
 * @param content the values as stored (see content.ts), with the names of what was erased; null where all was
 */
export function viewOf(leaf: Leaf, hash: string, content: string | null): EntryView {
  const split = content === null ? null : splitContent(content);
  const fields = (section: SectionName): FieldViews => {
    const out = new Map<string, FieldView>();
    for (const name of sectionCommitments(leaf, section).keys()) {
      const text = split?.texts.get(section)?.get(name);
      const erased = split === null || split.erased.get(section)?.has(name) === true;
      out.set(name, text === undefined ? { missing: erased ? "erased" : "commitment-only" } : { text });
    }
    return out;
  };
  const { actor } = leaf;
  return {
    seq: leaf.seq,
    hash,
    id: leaf.id,
    kind: leaf.kind,
    recorded_at: leaf.recordedAt,
    occurred_at: leaf.occurredAt,
    session: leaf.session,
    run: leaf.run,
    step: leaf.step,
    call: leaf.call,
    actor:
      actor === null
        ? null
        : {
            type: actor.type,
            id: actor.id,
            code_hash: actor.codeHash === null ? null : toHex(actor.codeHash),
          },
    action: fields("action"),
    authorization:
      leaf.authorization === null ? null : { type: leaf.authorization.tag, fields: fields("authorization") },
    outcome: leaf.outcome === null ? null : { status: leaf.outcome.tag, fields: fields("outcome") },
  };
}
