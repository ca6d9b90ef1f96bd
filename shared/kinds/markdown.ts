/**
 * `docs/kinds.md`, made from the catalogue. A test holds the file against this; to write it anew:
 *
 *     node -e 'import("./shared/kinds/markdown.ts").then((m) => process.stdout.write(m.renderKindsMarkdown()))' > docs/kinds.md
 *
 * @module
 */
import { KINDS } from "./catalogue.ts";
import { MAX_DECLARATION_BYTES, MAX_DECLARED_KINDS } from "./declaration.ts";
import { MAX_ALTERNATIVES, MAX_LEVELS } from "./extension-schema.ts";
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
\`[a-z0-9_-]\`; the name is one or more parts of \`[A-Za-z0-9_-]\` with dots between; the whole has at most 128 characters. It
may have an authorization, as our kinds have it, and the fields that all kinds share.

**A prefix that you did not declare** takes any name and any fields whose names are 1 to 64 of \`[a-z0-9_.]\`, and an outcome.
So nobody is kept from recording something because nobody declared it yet: what is not recorded is lost for good, and what
is recorded without a schema is not. The price is that a typo in such an entry is not refused. \`GET /v1/extensions\` says which
prefixes are declared, and \`GET /v1/entries?kind=ext.<prefix>.<name>\` what was sent under one that is not.

**A prefix that you declared** has the kinds of its declaration and no others:

    PUT /v1/extensions/acme
    {"kinds": {
      "refund.made": {
        "description": "Money went back.",
        "action": {
          "type": "object",
          "properties": {"cents": {"type": "integer", "minimum": 1}, "note": {"type": "string", "maxLength": 200}},
          "required": ["cents"],
          "additionalProperties": false
        },
        "outcome": {"type": "object", "properties": {"receipt": {"type": "string"}}, "additionalProperties": false}
      }
    }}

An entry of another name under it is refused as \`unknown-kind\`. A field that is not as the schema demands is refused as it is
in our kinds: \`invalid-field\`, \`unknown-field\`, \`missing-field\`, with a pointer. Entries that were stored before stay as they are.

- A declaration replaces the one before, whole. The same content again is the same version (200), other content the next
  one (201). With no kinds at all nothing is taken under the prefix. A prefix that was declared once stays so; a schema
  without \`"additionalProperties": false\` leaves a kind's further fields open.
- Each version is an \`extension.declared\` entry on \`$system\`, with its hash, before it holds. The hash is SHA-256 of the
  declaration's canonical JSON. Of the recorded versions the highest holds; one whose request was cut off is recorded, and
  holds once the same request is made again.
- It holds everywhere within 60 seconds: so long does a Worker remember what is declared. It asks the tenant's directory
  when it meets such a kind and knows nothing newer, and answers 503 and stores nothing where it gets no answer. Batches
  without kinds of your own ask nothing.
- A client that retries an entry is checked by what holds then. Where a new version is narrower, give the kind a new name,
  or send with an \`Idempotency-Key\`: a request that was answered before is answered so again.
- It takes a key with the scope \`policy\` that is for all principals. \`GET /v1/extensions/{prefix}\` shows the declaration, with
  \`?version=\` one that held before. \`runseal extensions\` declares and lists.
- At most ${MAX_DECLARED_KINDS} kinds and ${MAX_DECLARATION_BYTES / 1024} KiB under a prefix, 16 prefixes, 1,000 versions of each.

The schemas are JSON Schema 2020-12, of the action and of the outcome without its \`status\`; without \`outcome\` the kind has
none. What is taken is checked as the standard says, and everything else is refused when it is declared:

- \`type\`, \`enum\` and \`const\` with scalars, \`anyOf\`; \`minLength\`, \`maxLength\`; \`minimum\`, \`maximum\`, \`exclusiveMinimum\`,
  \`exclusiveMaximum\`, \`multipleOf\`; \`items\`, \`minItems\`, \`maxItems\`; \`properties\`, \`required\`, \`additionalProperties\`; and what only
  explains: \`title\`, \`description\`, \`examples\`, \`deprecated\`, \`$comment\`.
- Not \`pattern\`, \`format\`, \`$ref\`, nor a combination of keywords whose meaning is not plain. A section itself takes
  \`additionalProperties\` as true or false alone.
- An integer is at most 2^53 - 1 from 0. Numbers are compared as binary64, and \`multipleOf\` allows for what that
  loses of decimal fractions.
- At most ${MAX_LEVELS} levels, and at most ${MAX_ALTERNATIVES} alternatives of \`anyOf\` for one place of a value.
- A field that is not required may be null, as in our kinds. A member of a nested object may not, unless its schema says so.
- A field that is sent as a commitment is there; its value is not checked.
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
