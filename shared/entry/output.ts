/**
 * An entry as the API answers it: text, not an object, so that every number leaves with the digits that it came with.
 *
 * @module
 */
import { toHex } from "../bytes.ts";
import { formatTime } from "../time.ts";
import type { SectionName } from "./commitment.ts";
import { SECTIONS } from "./commitment.ts";
import type { SplitContent } from "./content.ts";
import { splitContent } from "./content.ts";
import { writeFieldForm } from "./field-form.ts";
import type { Leaf } from "./leaf.ts";
import { sectionCommitments } from "./leaf.ts";

/** An entry as it is stored: leaf in base64, values as text, null once erased. */
export interface StoredEntry {
  readonly seq: number;
  /** Hex. */
  readonly hash: string;
  /** Base64. */
  readonly leaf: string;
  readonly content: string | null;
}

const TAG_MEMBER: Readonly<Record<SectionName, string | null>> = {
  action: null,
  authorization: "type",
  outcome: "status",
};

/** `content` is null where all was erased. */
function sectionText(
  section: SectionName,
  tag: string | null,
  leaf: Leaf,
  content: SplitContent | null,
): string {
  const texts = content?.texts.get(section);
  const members: string[] = [];
  const tagMember = TAG_MEMBER[section];
  if (tagMember !== null && tag !== null) members.push(`"${tagMember}":${JSON.stringify(tag)}`);
  if (texts !== undefined)
    for (const [name, text] of texts) members.push(`"${name}":${writeFieldForm(text)}`);
  for (const [name, commitment] of sectionCommitments(leaf, section)) {
    // A field without its value shows as what was committed.
    if (texts?.has(name) === true) continue;
    const erased = content === null || content.erased.get(section)?.has(name) === true;
    members.push(`"${name}":{${erased ? '"$erased":true,' : ""}"$commitment":"${toHex(commitment)}"}`);
  }
  return `{${members.join(",")}}`;
}

/** JSON text of the entry. `extra` holds further members, as JSON texts by name. */
export function entryText(
  stored: StoredEntry,
  leaf: Leaf,
  extra: Readonly<Record<string, string>> = {},
): string {
  const content = stored.content === null ? null : splitContent(stored.content);
  const members: [string, string][] = [
    ["seq", String(stored.seq)],
    ["hash", JSON.stringify(stored.hash)],
    ["leaf", JSON.stringify(stored.leaf)],
    ["recorded_at", JSON.stringify(formatTime(leaf.recordedAt))],
    [
      "submitter",
      JSON.stringify({ credential: toHex(leaf.submitter.credential), reporter: leaf.submitter.reporter }),
    ],
    ["id", JSON.stringify(leaf.id)],
    ["kind", JSON.stringify(leaf.kind)],
  ];
  for (const name of ["session", "run", "step", "call"] as const) {
    const value = leaf[name];
    if (value !== null) members.push([name, JSON.stringify(value)]);
  }
  if (leaf.occurredAt !== null) members.push(["occurred_at", JSON.stringify(formatTime(leaf.occurredAt))]);
  members.push(["reporter", JSON.stringify(leaf.submitter.reporter)]);
  if (leaf.actor !== null) {
    const { type, id, codeHash } = leaf.actor;
    members.push([
      "actor",
      JSON.stringify(codeHash === null ? { type, id } : { type, id, code_hash: toHex(codeHash) }),
    ]);
  }
  for (const section of SECTIONS) {
    const tag = section === "action" ? null : (leaf[section]?.tag ?? null);
    if (section !== "action" && tag === null) continue;
    members.push([section, sectionText(section, tag, leaf, content)]);
  }
  if (leaf.client !== null) {
    members.push([
      "client",
      JSON.stringify({ key: toHex(leaf.client.key), signature: toHex(leaf.client.signature) }),
    ]);
  }
  members.push(...Object.entries(extra));
  return `{${members.map(([name, text]) => `"${name}":${text}`).join(",")}}`;
}
