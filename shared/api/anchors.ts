/**
 * The shapes of heads that are kept elsewhere (docs/anchoring.md): what is sent, and what is answered.
 *
 * @module
 */
import { z } from "zod";
import { Hash, PrincipalName, Time } from "./schemas.ts";

/** Characters of a receipt: a time stamp token with its certificates in base64, or an inclusion proof. */
const MAX_RECEIPT = 65_536;
/** A note has at most a hundred signatures; those of logs and witnesses are some hundred characters each. */
const MAX_CHECKPOINT = 65_536;

export const AnchorIn = z
  .strictObject({
    principal: PrincipalName.optional().describe("whose log it is; or `log`"),
    log: z.literal("tenant").optional().describe("the tenant's log of heads"),
    checkpoint: z.string().min(1).max(MAX_CHECKPOINT).describe("the head that is kept: a signed note"),
    where: z.string().min(1).max(1000).describe("where it is kept, in your words"),
    receipt: z
      .string()
      .min(1)
      .max(MAX_RECEIPT)
      .optional()
      .describe("what you got for it there; not looked into"),
  })
  .refine(({ principal, log }) => (principal === undefined) !== (log === undefined), {
    message: "one of principal and log",
    path: ["principal"],
  });

export const AnchorOut = z.object({
  size: z.int().min(1),
  root: Hash,
  checkpoint: z.string(),
  where: z.string(),
  receipt: z.string().nullable(),
  by: z.string().describe("the API key that said so"),
  anchored_at: Time,
});

export const AnchoredLogOut = z.object({
  principal: PrincipalName.nullable().describe("null for the tenant's log of heads"),
  generation: z.int().min(0),
  log_id: Hash,
  size: z.int().min(0).describe("of the head that was reported last, some seconds ago"),
  anchor: AnchorOut.nullable().describe("the last head that is known to be kept elsewhere"),
  age_seconds: z.int().min(0).nullable(),
  lag_entries: z.int().min(0).describe("entries after the anchor"),
});

export const AnchorTaken = z.object({
  result: z.enum(["advanced", "unchanged"]),
  log_id: Hash,
  size: z.int().min(1),
  root: Hash,
});

export const AnchorsPage = z.object({
  log: AnchoredLogOut.describe("the tenant's log of heads"),
  logs: z.array(AnchoredLogOut).describe("by log id"),
  next_cursor: z.string().nullable(),
});
