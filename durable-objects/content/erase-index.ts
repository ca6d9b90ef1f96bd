/**
 * Erases content in D1: the columns become what the log itself has left of it. The same again changes nothing.
 *
 * @module
 */
import { splitContent } from "../../shared/entry/content.ts";
import type { EntryContent } from "../../shared/entry/erase.ts";
import { RunsealError } from "../../shared/errors.ts";
import { entryNumber } from "../../workers/index-db/entry-number.ts";

/** What is left of an entry. */
export interface LeftContent extends EntryContent {
  readonly seq: number;
}

/** Characters of one statement's JSON: a bound parameter of D1 holds 2 MB, and a character takes up to three bytes. */
const MAX_CHARS = 500_000;

const NUMBER = entryNumber("(SELECT log FROM logs WHERE log_id = ?2)", "r.value ->> 's'");

/** By the number alone: where it is also said to be one of the list, SQLite goes through the list for each entry. */
export const ERASE_ROWS = `UPDATE entries SET content = coalesce(?3, r.value ->> 'v'), salts = coalesce(?4, r.value ->> 'x'),
  tool = CASE r.value ->> 'o' WHEN 1 THEN NULL ELSE tool END
FROM json_each(?1) r WHERE entries.entry = ${NUMBER}
  AND (entries.content IS NOT coalesce(?3, r.value ->> 'v') OR entries.salts IS NOT coalesce(?4, r.value ->> 'x'))`;

const COUNT = `SELECT count(*) AS n FROM entries WHERE entry IN (SELECT ${NUMBER} FROM json_each(?1) r)`;

/** Whether the value that the column `tool` is taken from is erased. */
function toolIsErased(values: string | null): boolean {
  return values === null || splitContent(values).erased.get("action")?.has("tool") === true;
}

function charsOf({ values, salts }: EntryContent): number {
  return (values?.length ?? 0) + (salts?.length ?? 0);
}

/**
 * Writes what is left of these entries.
 *
 * @throws what D1 throws; `RunsealError("index-behind")` where D1 does not hold one of them
 */
export async function eraseInIndex(
  db: D1Database,
  logId: string,
  entries: Iterable<LeftContent>,
): Promise<void> {
  let batch: string[] = [];
  let chars = 0;
  const write = async (large: EntryContent | null): Promise<void> => {
    if (batch.length === 0) return;
    const rows = `[${batch.join(",")}]`;
    const [, counted] = await db.batch<{ n: number }>([
      db.prepare(ERASE_ROWS).bind(rows, logId, large?.values ?? null, large?.salts ?? null),
      db.prepare(COUNT).bind(rows, logId),
    ]);
    if (counted?.results[0]?.n !== batch.length) {
      throw new RunsealError("index-behind", "D1 lacks entries that it once confirmed");
    }
    batch = [];
    chars = 0;
  };
  for (const entry of entries) {
    const { seq, values, salts } = entry;
    const tool = toolIsErased(values) ? 1 : 0;
    const size = charsOf(entry);
    if (chars + size > MAX_CHARS) await write(null);
    if (size > MAX_CHARS) {
      // Bound on its own, for escaped once more inside JSON it could pass a parameter's 2 MB.
      batch.push(JSON.stringify({ s: seq, v: null, x: null, o: tool }));
      await write(entry);
      continue;
    }
    batch.push(JSON.stringify({ s: seq, v: values, x: salts, o: tool }));
    chars += size;
  }
  await write(null);
}
