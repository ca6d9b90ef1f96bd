/**
 * The shapes of the HTTP surface, as Zod schemas: they validate requests at the edge, type the
 * SDK, and become /openapi.json.
 *
 * @module
 */
import { z } from "zod";
import { REPORTERS } from "../entry/leaf.ts";
import { MANAGED_ROLES, OPEN_ROLES } from "../registry/record.ts";
import { LimitsIn, LimitsOut } from "./limits.ts";
import { SCOPES } from "./scopes.ts";

const hex = (bytes: number) =>
  z
    .string()
    .regex(new RegExp(`^[0-9a-f]{${2 * bytes}}$`))
    .describe(`${bytes} bytes of lower-case hex`);

export const Hash = hex(32);
export const HexId = hex(16);
export const Seq = z.int().min(1).describe("position in the log, from 1");
export const OpaqueId = z
  .string()
  .regex(/^[A-Za-z0-9._:-]{1,128}$/)
  .describe("opaque identifier, in the clear and permanent: 1 to 128 of A-Z a-z 0-9 . _ : -");
export const Time = z.string().describe("RFC 3339, up to nine fractional digits");
export const PrincipalName = z
  .string()
  .regex(/^(\$system|[A-Za-z0-9._:-]{1,128})$/)
  .describe("name of a principal; $system is the service's own log of the tenant");

/** A section of an entry: fields by name. A value may be replaced by a commitment, or come with its own salt. */
export const Section = z.record(z.string(), z.unknown());

export const ActorIn = z.strictObject({
  type: OpaqueId,
  id: OpaqueId,
  code_hash: Hash.nullish(),
});

/** The signature of a key with role `client` over the entry's statement. */
export const ClientSignature = z.strictObject({ key: hex(32), signature: hex(64) });

export const EntryIn = z
  .strictObject({
    id: OpaqueId.optional(),
    kind: z.string(),
    session: OpaqueId.nullish(),
    run: OpaqueId.nullish(),
    step: OpaqueId.nullish(),
    call: OpaqueId.nullish(),
    occurred_at: Time.nullish(),
    reporter: z.enum(REPORTERS).optional(),
    actor: ActorIn.nullish(),
    action: Section.optional(),
    authorization: z.looseObject({ type: z.string() }).nullish(),
    outcome: z.looseObject({ status: z.string() }).nullish(),
    client: ClientSignature.nullish(),
  })
  .describe("one entry as it is sent");

export const Head = z.object({
  seq: z.int().min(0),
  hash: Hash,
  size: z.int().min(0),
  root: Hash,
  checkpoint: z.string().describe("C2SP tlog-checkpoint in a signed note"),
  epoch: z.int().min(0),
  key: hex(32),
  mirrored_size: z.int().min(0).describe("size of the head that the mirror holds"),
  asserted: z.array(z.string()).describe("members that no signature covers"),
});

/** What is wrong with one entry. */
export const ItemProblem = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string().optional(),
  pointer: z.string().optional(),
});

export const ItemResult = z.object({
  index: z.int().min(0),
  id: z.string().optional(),
  seq: Seq.optional(),
  hash: Hash.optional(),
  status: z.enum(["stored", "seen"]).optional(),
  proof: z.string().optional().describe("c2sp.org/tlog-proof@v1, with ?proof=true"),
  checkpoint: z.string().optional().describe("the checkpoint that the proof leads to"),
  path: z.array(Hash).optional().describe("the proof's hashes, RFC 6962 section 2.1.1"),
  error: ItemProblem.optional(),
});

export const AppendAnswer = z.object({
  results: z.array(ItemResult),
  head: Head,
  mirrored_size: z.int().min(0),
});

/** Only this admits an act. */
export const Admitted = z.object({
  admitted: z.literal(true),
  id: OpaqueId,
  seq: Seq,
  hash: Hash,
  status: z.enum(["stored", "seen"]),
  head: Head,
  mirrored_size: z.int().min(0),
});

export const EntryOut = z.looseObject({
  seq: Seq,
  hash: Hash,
  leaf: z.string().describe("the signed bytes, base64"),
  recorded_at: Time,
  submitter: z.object({ credential: HexId, reporter: z.enum(REPORTERS) }),
  id: OpaqueId,
  kind: z.string(),
  action: Section,
});

/** An entry of a query over the whole tenant names its log. */
export const TenantEntryOut = EntryOut.extend({ principal: PrincipalName });

export const Page = z.object({
  entries: z.array(EntryOut),
  next_cursor: z.string().nullable(),
  head_seq: z.int().min(0),
});

export const TenantPage = z.object({
  entries: z.array(TenantEntryOut),
  next_cursor: z.string().nullable(),
});

export const VERDICTS = [
  "altered",
  "missing",
  "duplicate",
  "fork",
  "truncated",
  "bad-signature",
  "unknown-key",
  "malformed",
] as const;

export const Break = z.object({
  seq: z.int().min(0),
  verdict: z.enum(VERDICTS),
  expected: z.string().nullable(),
  found: z.string().nullable(),
  detail: z.string(),
});

export const VerifyReport = z.object({
  verdict: z.enum(["intact", "broken", "unsupported"]),
  from: z.int(),
  to: z.int(),
  checked: z.int().min(0),
  head: Head.partial().nullable(),
  last: z.object({ seq: z.int().min(0), hash: Hash }).nullable(),
  issues: z.array(z.object({ seq: z.int().min(0), code: z.string(), detail: z.string() })),
  break: Break.optional(),
  kept_head: z
    .object({ seq: Seq, hash: z.string(), found: Hash.nullable(), matches: z.boolean() })
    .optional(),
  trusted: z.array(z.string()),
  not_checked: z.array(z.string()).optional(),
  freshness: z
    .object({
      listed: z
        .object({ size: Seq, time: z.string(), index: z.int().min(0), tenant_log_size: z.int().min(1) })
        .nullable()
        .describe("the last list of heads in the bundle that names the log"),
      witnessed: z.array(
        z.object({
          witness: z.string(),
          time: z.string(),
          size: Seq.nullable().describe("entries that were there by then; null: the list is not covered"),
        }),
      ),
    })
    .optional()
    .describe("how old the head is; absent where the bundle shows nothing of it"),
  pinned: z.boolean().optional(),
  verified_by: z.string(),
  next: z.int().optional().describe("where to go on: `from` of the next request"),
});
export type VerifyReport = z.infer<typeof VerifyReport>;

export const TenantIn = z.strictObject({
  name: z.string().min(1).max(200),
  recovery_key: hex(32).optional().describe("public key of the offline recovery key; bound now or never"),
  limits: LimitsIn.optional(),
  recovery_signature: hex(64).optional().describe("the recovery key's signature over genesis, as drafted"),
});
export const TenantAnswer = z.object({
  tenant: z.object({ id: HexId, name: z.string() }),
  registry_id: Hash,
  api_key: z.string().describe("the first admin key; shown here and nowhere else"),
});

export const ApiKeyIn = z.strictObject({
  name: z.string().min(1).max(200),
  scopes: z.array(z.enum(SCOPES)).min(1).max(SCOPES.length),
  principals: z
    .array(z.union([z.literal("*"), PrincipalName]))
    .min(1)
    .max(1000),
  limits: LimitsIn.optional().describe("beside the tenant's, for what this key does"),
});
export const ApiKeyOut = z.object({
  id: HexId,
  name: z.string(),
  scopes: z.array(z.string()),
  principals: z.array(z.string()),
  limits: LimitsOut.nullable(),
  created_at: Time,
  revoked_at: Time.nullable(),
});
export const ApiKeyCreated = ApiKeyOut.extend({
  api_key: z.string().describe("shown here and nowhere else"),
});

export const PrincipalIn = z.strictObject({ name: OpaqueId });
export const PrincipalOut = z.object({
  id: HexId,
  name: PrincipalName,
  generation: z.int(),
  origin: z.string(),
  created_at: Time,
});

export const RunSummary = z.object({
  run: OpaqueId,
  first_seq: Seq,
  last_seq: Seq,
  entries: z.int(),
  first_recorded_at: Time,
  last_recorded_at: Time,
  status: z.string().describe("the last terminal or status-bearing kind, or `open`"),
  kinds: z.record(z.string(), z.int()),
  tools: z.record(z.string(), z.int()),
  decisions: z.record(z.string(), z.int()),
});

/** A record of the key registry, as published. */
export const RegistryRecordOut = z.object({
  epoch: z.int().min(0),
  record: z.string().describe("the record's bytes, base64"),
  signatures: z.array(z.object({ key: hex(32), signature: hex(64) })),
  effective_at: Time.describe("from when on logs take the epoch; no signature covers it"),
});
export const RegistryAnswer = z.object({
  registry_id: Hash,
  epoch: z.int().min(0).describe("the epoch in effect"),
  origin: z.string(),
  records: z.array(RegistryRecordOut).describe("every record, those included that are not in effect yet"),
});

export const ProposalIn = z.union([
  z.strictObject({ op: z.literal("add"), role: z.enum(OPEN_ROLES), key: hex(32) }),
  z.strictObject({ op: z.literal("recover"), role: z.enum(MANAGED_ROLES) }),
]);
export const ProposalOut = z.object({
  epoch: z.int().min(0),
  record: z.string().describe("the record's bytes, base64: send them back as they are"),
  hash: Hash.describe("SHA-256 of the record"),
  message: z.string().describe("what the key signs, hex: dCBOR([runseal.sig.v1, registry, hash])"),
});
/** A proposal, signed. */
export const SignedRecordIn = z.strictObject({ record: z.string().max(4096), signature: hex(64) });
export const RotationIn = z.strictObject({ role: z.enum(MANAGED_ROLES) });
export const TenantDraft = z.object({
  tenant_id: HexId,
  genesis: ProposalOut.describe("for the recovery key to sign"),
});

export const ProblemDocument = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string().optional(),
  pointer: z.string().optional(),
  request_id: z.string(),
});
