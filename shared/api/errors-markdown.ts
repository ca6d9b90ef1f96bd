/**
 * docs/errors.md, from the list of problems.
 *
 * @module
 */
import { PROBLEMS, type ProblemCode, problemType } from "./problems.ts";

const HEAD = `# Errors

Every error is a problem document (RFC 9457, \`application/problem+json\`):

\`\`\`json
{
  "type": "urn:runseal:problem:unknown-field",
  "title": "Unknown field",
  "status": 422,
  "detail": "there is no such field",
  "pointer": "/action/argz",
  "request_id": "5b0c6c4e-9a41-4c0e-8f43-6b1f6f2f8a55"
}
\`\`\`

\`type\` is stable: branch on it, not on \`title\` or \`detail\`. \`pointer\` (RFC 6901) leads into the request's body; for a
parameter it is \`?\` and the parameter's name. No document holds a value that was sent. An append's answer has the same
members for each entry that was refused, with the pointer relative to that entry. A 503 carries Retry-After and may be
repeated as it is: an entry with an id is never stored twice.

| type | status | when | what to do |
| --- | --- | --- | --- |
`;

/** The page's text. */
export function renderErrorsMarkdown(): string {
  const rows = (Object.keys(PROBLEMS) as ProblemCode[]).map((code) => {
    const { status, title, help } = PROBLEMS[code];
    return `| \`${problemType(code)}\` | ${status} | ${title} | ${help} |`;
  });
  return `${HEAD}${rows.join("\n")}\n`;
}
