/**
 * The index columns of an entry, from its leaf and what is left of its values: what D1 is filled with again.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import { splitSections } from "./content.ts";
import type { Leaf, LeafBody } from "./leaf.ts";

/** Characters of a tool's canonical text that is an index value. */
const MAX_TOOL_CHARS = 1024;

/** The tool's name, where it is a plain string short enough to be an index value. It is content, and erased with it. */
function isToolColumn(text: string | undefined): text is string {
  return text !== undefined && text.length <= MAX_TOOL_CHARS && text.startsWith('"');
}

function member(name: string, value: string | null): string {
  return value === null ? "" : `,"${name}":"${value}"`;
}

/**
 * The columns as a row holds them (see row.ts).
 *
 * @param tool canonical text of the action's tool, where the entry has one
 */
export function columnsText(body: LeafBody, tool: string | undefined): string {
  // Identifiers, kinds and statuses have no character that JSON escapes, and a canonical text is JSON as it stands.
  const names = `"i":"${body.id}","k":"${body.kind}"${member("e", body.session)}${member("r", body.run)}`;
  const acts = `${member("p", body.step)}${member("c", body.call)}`;
  const toolMember = isToolColumn(tool) ? `,"o":${tool}` : "";
  return `{${names}${acts}${toolMember}${member("u", body.outcome?.tag ?? null)}}`;
}

/**
 * The same from what is stored.
 *
 * @param values the entry's values, or null once they are erased. Throws `RunsealError("malformed-content")`
 */
export function columnsOf(leaf: Leaf, values: string | null): string {
  const tool = values === null ? undefined : splitSections(values).get("action")?.get("tool");
  return columnsText(leaf, tool);
}

const ID = /^\{"i":"([^"]*)"/;

/** The entry's id, from its columns. Throws `RunsealError("malformed-content")`. */
export function idOfColumns(columns: string): string {
  const id = ID.exec(columns)?.[1];
  if (id === undefined) throw new RunsealError("malformed-content", "stored columns do not begin with an id");
  return id;
}
