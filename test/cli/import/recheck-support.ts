/**
 * Re-checks entries as they were sent, without a log between: the views are made here from the entries' texts.
 *
 * @module
 */
import { nativeCrypto } from "../../../native/crypto.ts";
import type { EntryView, FieldViews } from "../../../shared/entry/view.ts";
import { type JsonValue, jsonText, parseJsonValue } from "../../../shared/json/value.ts";
import { recheckRunSync } from "../../../shared/recheck/compare.ts";
import { RunFold } from "../../../shared/recheck/fold.ts";
import type { RecheckReport } from "../../../shared/recheck/report.ts";
import { type RulesPolicy, rulesPolicy } from "../../../shared/recheck/rules.ts";
import { parseTime } from "../../../shared/time.ts";

export const rules = (document: unknown): RulesPolicy =>
  rulesPolicy(typeof document === "string" ? document : JSON.stringify(document), nativeCrypto);

/** The report on one run's entries, in the order given. `specs` are the stored ones, by hash. */
export function recheckEntries(
  entries: readonly string[],
  policy: RulesPolicy,
  specs: ReadonlyMap<string, string>,
): RecheckReport {
  const views = entries.map(viewOf);
  const fold = new RunFold(views[0]?.run ?? "");
  for (const view of views) fold.add(view);
  return recheckRunSync(fold.finish(), policy, { specs: (hash) => specs.get(hash), crypto: nativeCrypto });
}

function viewOf(text: string, index: number): EntryView {
  const entry = parseJsonValue(text) as Map<string, JsonValue>;
  const plain = (name: string): string | null => (entry.get(name) as string | undefined) ?? null;
  const at = plain("occurred_at");
  const outcome = entry.get("outcome") as Map<string, JsonValue> | undefined;
  return {
    seq: index + 1,
    hash: "00".repeat(32),
    id: plain("id") ?? "",
    kind: plain("kind") ?? "",
    recorded_at: 0n,
    occurred_at: at === null ? null : parseTime(at),
    session: plain("session"),
    run: plain("run"),
    step: plain("step"),
    call: plain("call"),
    actor: null,
    action: fieldsOf(entry.get("action")),
    authorization: null,
    outcome:
      outcome === undefined ? null : { status: outcome.get("status") as string, fields: fieldsOf(outcome) },
  };
}

/** The fields as the log keeps them: `{"$value": x}` is x. */
function fieldsOf(section: JsonValue | undefined): FieldViews {
  const fields = new Map<string, { text: string }>();
  for (const [name, value] of section as Map<string, JsonValue>) {
    const wrapped = value instanceof Map && value.size === 1 ? value.get("$value") : undefined;
    fields.set(name, { text: jsonText(wrapped ?? value) });
  }
  return fields;
}
