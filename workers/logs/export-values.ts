/**
 * The values of an export: all that is stored, or chosen fields of it (docs/format.md, "Bundles"). What is handed out is
 * on the tenant's system log before it is.
 *
 * @module
 */
import type { FieldLine } from "../../shared/bundle/format.ts";
import { splitSections } from "../../shared/entry/content.ts";
import type { FieldSelection } from "../../shared/entry/field-selection.ts";
import type { Env } from "../env.ts";
import type { Caller } from "../http/auth.ts";
import type { OpenLog } from "./open-log.ts";
import { SYSTEM_PRINCIPAL } from "./open-log.ts";
import { logIdOf } from "./read.ts";
import { recordSystemEntry } from "./system-log.ts";

/** Which values are handed out, and to whom, where it was said. */
export interface Disclosure {
  /** Null: all, as `content` lines; else the chosen ones, as `disclosure` lines. */
  readonly selection: FieldSelection | null;
  readonly recipient: string | undefined;
  readonly caller: Caller;
}

/** What an export needs of an entry's row. */
interface ValuesRow {
  readonly seq: number;
  readonly content: string | null;
  readonly salts: string | null;
}

/** The line with the entry's values; null where it has none to hand out. */
export function valuesLine(row: ValuesRow, selection: FieldSelection | null): string | null {
  if (row.content === null || row.salts === null) return null;
  const salts = splitSections(row.salts);
  const fields: FieldLine[] = [];
  for (const [section, texts] of splitSections(row.content)) {
    for (const [name, text] of texts) {
      const salt = salts.get(section)?.get(name)?.slice(1, -1);
      const chosen = selection?.has(section, name) ?? true;
      if (salt !== undefined && chosen) fields.push({ section, name, salt, text });
    }
  }
  const t = selection === null ? "content" : "disclosure";
  return fields.length === 0 ? null : JSON.stringify({ t, seq: row.seq, fields });
}

/** Records that values of these entries are handed out. Throws a 503 problem where that can't be made durable. */
export async function recordDisclosure(
  env: Env,
  log: OpenLog,
  { selection, recipient, caller }: Disclosure,
  from: number,
  to: number,
): Promise<void> {
  // The service's own log holds no content of the tenant's; and each export of it would make it longer.
  if (from > to || log.identity.name === SYSTEM_PRINCIPAL) return;
  const kind = "disclosure.made";
  await recordSystemEntry(env, caller.tenant, {
    id: `${kind}.${crypto.randomUUID()}`,
    kind,
    action: {
      log_id: logIdOf(log),
      from,
      to,
      ...(selection === null ? {} : { fields: selection.names }),
      ...(recipient === undefined ? {} : { recipient }),
      by: caller.key.id,
    },
  });
}
