/**
 * The problems that the service answers (RFC 9457): one list, from which the documents, the OpenAPI and docs/errors.md
 * are made. A `type` is `urn:runseal:problem:<code>`, stable for good.
 *
 * @module
 */

interface ProblemSpec {
  readonly status: number;
  /** The same for every occurrence. */
  readonly title: string;
  /** For docs/errors.md: when it comes, and what to do. */
  readonly help: string;
}

function problem(status: number, title: string, help: string): ProblemSpec {
  return { status, title, help };
}

export const PROBLEMS = {
  "invalid-request": problem(
    400,
    "The request is not as the contract demands",
    "Mend the member or parameter that `pointer` names, or send the body whole where it broke off.",
  ),
  "json-syntax": problem(
    400,
    "The body is not JSON",
    "Nothing was stored. Send JSON (RFC 8259), or NDJSON with its content type.",
  ),
  "invalid-cursor": problem(
    400,
    "The cursor belongs to another query",
    "Send a cursor only with the query and key that it came from.",
  ),
  unauthenticated: problem(
    401,
    "No valid credential",
    "Send `Authorization: Bearer <API key>`. An unknown, a wrong and a revoked key look the same.",
  ),
  forbidden: problem(403, "The key lacks the scope", "Use a key with the scope that `detail` names."),
  "not-found": problem(
    404,
    "Not found",
    "There is none, or it is another tenant's or outside the key's principals: these look the same.",
  ),
  "untrusted-checkpoint": problem(
    403,
    "No trusted key signed the checkpoint",
    "The witness knows the log, and none of the checkpoint's signatures verifies under its keys.",
  ),
  "unknown-log": problem(
    404,
    "The witness does not know the log",
    "The operator of the witness adds logs with `PUT /v1/witnessed-logs`.",
  ),
  "method-not-allowed": problem(405, "Method not allowed", "See `Allow`."),
  conflict: problem(
    409,
    "The id is taken by another entry",
    "`differs` names the members that differ, for keys that may read. Use a new id for a new entry.",
  ),
  erased: problem(
    409,
    "The id is taken by an entry whose content was erased",
    "The receipt of the stored entry is in the answer; nothing was stored.",
  ),
  "gate-failed": problem(
    409,
    "The recheck's gate failed",
    "The report is in `report`: it says which evaluations differ, or why none could be re-checked.",
  ),
  "recheck-unfinished": problem(
    409,
    "The re-check is not at its end",
    "Its report is stored at its end. `GET /v1/rechecks/{id}?wait=30` waits for it.",
  ),
  "log-not-stopped": problem(
    409,
    "The log is not stopped",
    "Only a stopped log can be recovered: `detail` says how it stands.",
  ),
  "anchor-rejected": problem(
    409,
    "The head does not become an anchor",
    "`reason` says why: it is no head, of another log, not signed by it, or contradicts it. The last anchor stays.",
  ),
  "registry-moved": problem(
    409,
    "The registry has another record since",
    "The signed record no longer fits. Ask for a new proposal, and sign that.",
  ),
  "registry-pending": problem(
    409,
    "A rotation of this role is not in effect yet",
    "`GET /v1/registry` says from when on it is. Rotate again after that.",
  ),
  "key-registered": problem(
    409,
    "The key is or was registered",
    "A key is registered once, ever, in one role. Make a new one.",
  ),
  "no-recovery-key": problem(
    409,
    "The tenant has no recovery key",
    "A recovery key is bound when the tenant is created, or never.",
  ),
  "extension-limit": problem(
    409,
    "No further declaration is kept",
    "A tenant declares at most 16 prefixes, and each of them at most 1,000 times.",
  ),
  "policy-exists": problem(
    409,
    "The policy's version exists, or is not the next one",
    "A version never changes. Put the policy again without a version, or with the next one.",
  ),
  "inconsistent-checkpoint": problem(
    422,
    "The consistency proof does not hold",
    "The checkpoint does not go on from the one that the witness cosigned last.",
  ),
  "idempotency-in-flight": problem(
    409,
    "A request with this Idempotency-Key is being answered",
    "Send it again after the time that Retry-After names: it then gets the first one's answer.",
  ),
  "batch-too-large": problem(
    413,
    "The request's body is too large",
    "4 MiB and 1,000 entries a request. Split the batch; nothing was stored.",
  ),
  "unsupported-media-type": problem(
    415,
    "Unsupported content type",
    "Send application/json or application/x-ndjson.",
  ),
  "entries-refused": problem(
    422,
    "No entry of the request can be stored",
    "`results` has the reason of each. Nothing was stored.",
  ),
  "batch-refused": problem(
    422,
    "The atomic batch is refused",
    "`results` has the reason of each refused entry. Nothing was stored.",
  ),
  "idempotency-mismatch": problem(
    422,
    "The Idempotency-Key was used for another request",
    "Use a new key for a new request.",
  ),
  "engine-disabled": problem(
    422,
    "The policy's engine does not run here",
    "The service has no sandboxes for `module` policies (docs/policies.md). Run the policy yourself and send `decisions`.",
  ),
  "invalid-policy": problem(422, "The policy can't be used", "`pointer` names the place."),
  "invalid-extension": problem(
    422,
    "The declaration can't be used",
    "`pointer` names the place, `detail` says what is taken. docs/kinds.md has the rules.",
  ),
  "invalid-bundle": problem(422, "The bundle can't be read", "Send the NDJSON of an export, whole."),
  "json-utf8": problem(422, "Bad UTF-8", "`pointer` names the string that holds the bad bytes."),
  "json-surrogate": problem(422, "Unpaired surrogate", "`pointer` names the string. Send whole code points."),
  "json-duplicate-key": problem(422, "Repeated key", "`pointer` names the object's key that comes twice."),
  "json-depth": problem(422, "Nested too deeply", "A value holds at most 256 levels."),
  "json-number": problem(
    422,
    "Number out of range",
    "A number must be finite as a binary64 and its literal at most 10,000 bytes long.",
  ),
  "unknown-kind": problem(422, "Unknown kind", "The kinds are in docs/kinds.md."),
  "unknown-field": problem(
    422,
    "Unknown field",
    "A misspelt field would be a lost record, so it is refused. What has no field of its own goes under `extra`.",
  ),
  "missing-field": problem(422, "Missing field", "The kind demands the field that `pointer` names."),
  "invalid-field": problem(422, "Invalid field", "`pointer` names the field, `detail` says what it takes."),
  "too-many-fields": problem(422, "Too many fields", "An entry has at most 128 fields."),
  "value-too-large": problem(
    422,
    "Value too large",
    "A value has at most 1 MiB. Send a hash or a commitment in its place.",
  ),
  "entry-too-large": problem(422, "Entry too large", "An entry has at most 1.5 MiB of values."),
  "leaf-too-large": problem(
    422,
    "Leaf too large",
    "The signed bytes of an entry are at most 16 KiB: use fewer fields or shorter ids.",
  ),
  "invalid-record": problem(
    422,
    "The registry record can't be accepted",
    "`detail` says why: another operation, a key of small order, or a signature that does not verify. docs/keys.md has the rules.",
  ),
  "unknown-client-key": problem(
    422,
    "The client's signature does not count",
    "Its key has to hold the role `client`, and to have signed this entry for this log. docs/keys.md says how.",
  ),
  "not-stored": problem(
    422,
    "Refused with the rest of its atomic batch",
    "Mend the entries that have a reason of their own, or send without `atomic`.",
  ),
  "rate-limited": problem(
    429,
    "Too many entries in this minute",
    "This attempt stored nothing. Send it again after the time that Retry-After names: what an attempt before stored gets its receipts then. `RateLimit` says what is left.",
  ),
  "quota-exceeded": problem(
    429,
    "A quota is used up",
    "This attempt stored nothing; what was stored before stays. `detail` names the quota: bytes a day, or principals. docs/limits.md says who can raise it.",
  ),
  "idempotency-full": problem(
    503,
    "The log remembers as many Idempotency-Keys as it can",
    "None is forgotten before its 24 hours are over. Send without the header, each entry with an id of its own.",
  ),
  "too-many-rechecks": problem(
    429,
    "Too many re-checks of the tenant are at work",
    "At most 20 at a time. Retry after the time that Retry-After names, or cancel one.",
  ),
  "outbox-full": problem(
    503,
    "The log's outbox is full",
    "Retry after the time that Retry-After names. Nothing that was accepted is lost.",
  ),
  overloaded: problem(503, "The log is overloaded", "Retry after the time that Retry-After names."),
  "index-rebuilding": problem(
    503,
    "The index is behind the log",
    "The entries are safe; queries can't be answered until the index holds them all. Retry.",
  ),
  "index-unavailable": problem(503, "The index is away", "Retry after the time that Retry-After names."),
  "index-conflict": problem(
    503,
    "The index contradicts the log",
    "Somebody else wrote to the index. Verify the log to see where; docs/operate.md has the runbook.",
  ),
  "mirror-unavailable": problem(503, "The mirror is away", "Retry after the time that Retry-After names."),
  "log-stopped": problem(
    503,
    "The log is stopped",
    "Its storage and its mirror contradict each other. The operator's runbook is docs/operate.md.",
  ),
  "log-refilling": problem(
    503,
    "The log takes back what its storage lost",
    "Its storage was set back; its entries come from the mirror and the index. Retry; docs/operate.md has the runbook.",
  ),
  "registry-unavailable": problem(
    503,
    "The key registry is away",
    "Retry after the time that Retry-After names.",
  ),
  "storage-failed": problem(503, "The entries could not be stored", "Nothing was stored. Retry."),
  unavailable: problem(503, "A part of the service is away", "Retry after the time that Retry-After names."),
  internal: problem(
    500,
    "Internal error",
    "A defect of the service. The request id finds it in the operator's log.",
  ),
} as const satisfies Record<string, ProblemSpec>;

export type ProblemCode = keyof typeof PROBLEMS;

/** The `type` of a problem document. */
export function problemType(code: ProblemCode): string {
  return `urn:runseal:problem:${code}`;
}

/** Whether a code names a problem. */
export function isProblemCode(code: string): code is ProblemCode {
  return Object.hasOwn(PROBLEMS, code);
}
