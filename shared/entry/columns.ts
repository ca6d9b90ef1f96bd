/**
 * The index columns of an entry, from its leaf and what is left of its values: what D1 is filled with again.
 *
 * @module
 */
import { splitSections } from "./content.ts";
import type { Leaf } from "./leaf.ts";

/** Characters of a tool's canonical text that is an index value. */
const MAX_TOOL_CHARS = 1024;

/** The tool's name, where it is a plain string short enough to be an index value. It is content, and erased with it. */
export function toolColumn(text: string | undefined): string | undefined {
  if (text === undefined || text.length > MAX_TOOL_CHARS || !text.startsWith('"')) return undefined;
  return JSON.parse(text) as string;
}

/**
 * The columns as a row holds them (see row.ts).
 *
 * @param values the entry's values, or null once they are erased. Throws `RunsealError("malformed-content")`
 */
export function columnsOf(leaf: Leaf, values: string | null): string {
  const tool = values === null ? undefined : splitSections(values).get("action")?.get("tool");
  return JSON.stringify({
    i: leaf.id,
    k: leaf.kind,
    e: leaf.session ?? undefined,
    r: leaf.run ?? undefined,
    p: leaf.step ?? undefined,
    c: leaf.call ?? undefined,
    o: toolColumn(tool),
    u: leaf.outcome?.tag,
  });
}
