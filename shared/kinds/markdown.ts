/**
 * `docs/kinds.md`, made from the catalogue. A test holds the file against this; to write it anew:
 *
 *     node -e 'import("./shared/kinds/markdown.ts").then((m) => process.stdout.write(m.renderKindsMarkdown()))' > docs/kinds.md
 *
 * @module
 */
import { KINDS } from "./catalogue.ts";
import { SYSTEM_MAPPINGS, type SystemMapping } from "./mapping.ts";
import {
  AUTHORIZATION_MEANINGS,
  AUTHORIZATION_TYPES,
  AUTHORIZATIONS,
  COMMON_ACTION,
  COMMON_OUTCOME,
  OUTCOME_STATUSES,
} from "./sections.ts";
import { type FieldSpec, GROUPS, type KindSpec, type SectionSpec } from "./types.ts";

const INTRODUCTION = `# Kinds of entries

<!-- Made by renderKindsMarkdown() in shared/kinds/markdown.ts. Do not edit: change the catalogue, and run
node -e 'import("./shared/kinds/markdown.ts").then((m) => process.stdout.write(m.renderKindsMarkdown()))' > docs/kinds.md -->

Every entry has a \`kind\`. The kind says which fields the entry's sections may have. A field that the kind does not know
is refused with a pointer to it: a typo in an audit record is a lost record. What has no field goes under \`extra\`.

How to read the tables:

- \`?\` marks an optional field. An optional field may also be null; null is committed, and reads as not set. The same goes
  for the members of nested objects.
- *JSON* is any JSON value. *text* is a string. *label* is a string of at most 512 UTF-16 units. *hash* is a SHA-256 in
  lower-case hex. *time* is RFC 3339 with at most nine fractional digits, from 1970 to 2554. *count* is an integer from 0
  to 2^63 - 1, and *duration* is one in nanoseconds. *entry* is \`{seq, hash}\` of an entry of the same log. *head* is
  \`{size, root, seq?, hash?, checkpoint?}\`.
- The value of any field may be sent as \`{"$commitment": "<hex>"}\`, or with a salt of your own as
  \`{"$value": ..., "$salt": "<hex>"}\`. A commitment's value is not checked: the service does not have it.
- Numbers are kept as they are sent: 1.0 stays 1.0, and an integer past 2^53 keeps its digits.
`;

function fieldText(field: FieldSpec): string {
  return `\`${field.name}\`${field.optional ? "?" : ""} ${field.type}: ${field.description}`;
}

function ownFields(section: SectionSpec, common: Readonly<Record<string, unknown>>): readonly FieldSpec[] {
  return section.fields.filter(({ name }) => !Object.hasOwn(common, name));
}

function list(fields: readonly FieldSpec[]): string {
  return fields.map((field) => `- ${fieldText(field)}\n`).join("");
}

function kindText(spec: KindSpec): string {
  const lines = [`### ${spec.kind}\n\n${spec.description}\n`];
  const action = ownFields(spec.action, COMMON_ACTION);
  lines.push(action.length === 0 ? "\nNo fields of its own.\n" : `\n${list(action)}`);
  if (spec.outcome !== undefined) {
    const own = ownFields(spec.outcome, COMMON_OUTCOME);
    lines.push(
      `\nOutcome${spec.outcomeRequired ? "" : " (optional)"}${own.length === 0 ? ".\n" : `:\n\n${list(own)}`}`,
    );
  }
  return lines.join("");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

function names(fields: readonly FieldSpec[]): string {
  return fields.map(({ name, optional }) => `${name}${optional ? "?" : ""}`).join(", ");
}

function overview(): string {
  const rows = KINDS.map((spec) => {
    const outcome = spec.outcome === undefined ? "" : `${spec.outcomeRequired ? "required" : "optional"}`;
    const own = spec.outcome === undefined ? [] : ownFields(spec.outcome, COMMON_OUTCOME);
    const outcomeText = own.length === 0 ? outcome : `${outcome}: ${names(own)}`;
    const columns = [
      spec.group,
      spec.kind,
      names(ownFields(spec.action, COMMON_ACTION)),
      outcomeText,
      spec.authorization ? "optional" : "",
    ];
    return `| ${columns.map(cell).join(" | ")} |`;
  });
  return `## All kinds

| group | kind | action | outcome | authorization |
| --- | --- | --- | --- | --- |
${rows.join("\n")}
`;
}

function commonText(): string {
  const common = KINDS[0]?.action.fields.filter(({ name }) => Object.hasOwn(COMMON_ACTION, name)) ?? [];
  const outcome = KINDS.find((spec) => spec.outcome !== undefined)?.outcome?.fields ?? [];
  const types = AUTHORIZATION_TYPES.map(
    (type) => `| ${type} | ${AUTHORIZATION_MEANINGS[type]} | ${names(AUTHORIZATIONS[type].fields)} |`,
  );
  return `## What all kinds share

Fields that every action may have:

${list(common)}
Fields that every outcome may have besides its \`status\` (${OUTCOME_STATUSES.join(", ")}):

${list(outcome.filter(({ name }) => Object.hasOwn(COMMON_OUTCOME, name)))}
An \`authorization\` has a \`type\`, and the fields of that type:

| type | meaning | fields |
| --- | --- | --- |
${types.join("\n")}
`;
}

const NOTES = `## Choices

- \`policy.evaluated.view\` is optional, and whole where it is there. Evaluations without one exist: pauses of a runtime,
  and records from before views were kept. A re-check says of each why it can't be re-checked.
- \`tool_call_id\` may be empty, and may repeat: in real runs it does both. \`call\` in the envelope names the call.
- A call that was cut off has no \`tool.call.completed\`, or one with the outcome status \`unknown\`.
- \`http.request\` has no outcome: it is written before the request leaves. A request that was refused has the
  authorization type \`denied\`, and no response.
- \`run.status\` takes the host's times as the host writes them, as labels: some hosts write no offset.
- \`host.loss\` is also how a client says that it lost entries: \`{"calls": {"count": 12}, "reason": "queue_full"}\`.
- Kinds of the group "service" are written by the service only.
`;

const EXTENSIONS = `## Your own kinds

\`ext.<prefix>.<name>\` is a kind of your own, under a prefix of your own. The prefix is a lower-case letter and up to 31 of
\`[a-z0-9_-]\`; the name is one or more parts of \`[A-Za-z0-9_-]\` with dots between; the whole has at most 128 characters. Its
fields are free, by any names of 1 to 64 of \`[a-z0-9_.]\`, and it may have an authorization and an outcome. A prefix is not
declared anywhere, and has no schema: a typo in a field of such a kind is not refused.
`;

function mappingText({ system, of, note, mappings }: SystemMapping): string {
  const rows = mappings.map(
    ({ from, to, note: what }) => `| ${cell(from)} | ${to.join(", ")} | ${cell(what)} |`,
  );
  return `### ${system}: ${mappings.length} ${of}

${note}

| there | here | its members |
| --- | --- | --- |
${rows.join("\n")}
`;
}

/** The text of `docs/kinds.md`. */
export function renderKindsMarkdown(): string {
  const groups = GROUPS.map((group) => [group, KINDS.filter((spec) => spec.group === group)] as const);
  return [
    INTRODUCTION,
    overview(),
    commonText(),
    NOTES,
    ...groups
      .filter(([, kinds]) => kinds.length > 0)
      .map(([group, kinds]) => `## Group: ${group}\n\n${kinds.map(kindText).join("\n")}`),
    EXTENSIONS,
    `## From other systems

An importer keeps what an entry was: its bytes, its hash and its number there are committed as \`imported.*\` fields.
`,
    ...SYSTEM_MAPPINGS.map(mappingText),
  ].join("\n");
}
