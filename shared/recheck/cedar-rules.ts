/**
 * What the policies of a Cedar set ask for beyond permit and forbid, by annotation (docs/policies.md, "cedar: outcomes").
 *
 * @module
 */
import { z } from "zod";
import { RunsealError } from "../errors.ts";
import type { CedarEngine } from "./cedar-engine.ts";
import type { Outcome } from "./model.ts";

/** One policy of the set. */
export interface CedarRule {
  readonly outcome: Outcome;
  /** Its `@id`, else the id that Cedar gives it. */
  readonly label: string;
  /** `@kind` of the approval that it asks for; "" for none. */
  readonly kind: string;
  /** `@reason`; "" for none. */
  readonly reason: string;
}

const Failure = z.object({
  type: z.literal("failure"),
  errors: z.array(
    z.object({ message: z.string(), sourceLocations: z.array(z.object({ start: z.int() })).optional() }),
  ),
});
const Parts = z.object({
  type: z.literal("success"),
  policies: z.array(z.string()),
  policy_templates: z.array(z.string()),
});
const PolicyJson = z.object({
  type: z.literal("success"),
  json: z.object({
    effect: z.enum(["permit", "forbid"]),
    annotations: z.record(z.string(), z.string().nullable()).optional(),
  }),
});
const Success = z.object({ type: z.literal("success") });

/** Outcomes that a policy of each effect may ask for; the first is what it asks for unless told. */
const OUTCOMES_OF = {
  permit: ["allow", "require_approval"],
  forbid: ["deny", "abort"],
} as const satisfies Record<string, readonly Outcome[]>;

function refuse(message: string, pointer: string): never {
  throw new RunsealError("policy-invalid", message, pointer);
}

/**
 * The set's policies by Cedar's ids. Throws `RunsealError("policy-invalid")` for text that is no policy set, or one that
 * can't be used.
 *
 * @param pointer where the text lies
 */
export function readCedarRules(
  engine: CedarEngine,
  text: string,
  pointer: string,
): ReadonlyMap<string, CedarRule> {
  const parts = answerOf(
    Parts,
    engine.use((instance) => instance.split(text)),
    text,
    pointer,
  );
  if (parts.policy_templates.length > 0) refuse("a template has no place here: nothing links it", pointer);
  if (parts.policies.length === 0) refuse("there is no policy in it", pointer);
  // The parts come in the order of their ids as texts: policy0, policy1, policy10, policy2.
  const ids = parts.policies.map((_, index) => `policy${index}`).sort();
  const rules = new Map<string, CedarRule>();
  for (const [index, id] of ids.entries()) {
    const part = JSON.stringify(parts.policies[index]);
    const { json } = answerOf(
      PolicyJson,
      engine.use((instance) => instance.call("policyToJson", part)),
      text,
      pointer,
    );
    rules.set(id, ruleOf(json, id, pointer));
  }
  return rules;
}

/** Demands that the entities are ones that Cedar reads. Throws `RunsealError("policy-invalid")`. */
export function checkCedarEntities(engine: CedarEngine, json: string, pointer: string): void {
  if (json === "[]") return;
  const answer = engine.use((instance) => instance.call("checkParseEntities", `{"entities":${json}}`));
  if (!Success.safeParse(answer).success) refuse("not entities that Cedar reads", pointer);
}

function ruleOf(
  { effect, annotations = {} }: z.infer<typeof PolicyJson>["json"],
  id: string,
  pointer: string,
): CedarRule {
  const allowed: readonly Outcome[] = OUTCOMES_OF[effect];
  const asked = annotations.outcome;
  const outcome = asked === undefined ? allowed[0] : allowed.find((each) => each === asked);
  if (outcome === undefined)
    return refuse(`@outcome of a ${effect} policy is ${allowed.join(" or ")}`, pointer);
  const { kind, reason } = annotations;
  if (kind != null && outcome !== "require_approval")
    refuse("@kind is of a policy that asks for approval", pointer);
  return { outcome, label: annotations.id ?? id, kind: kind ?? "", reason: reason ?? "" };
}

function answerOf<T>(schema: z.ZodType<T>, answer: unknown, text: string, pointer: string): T {
  const parsed = schema.safeParse(answer);
  if (parsed.success) return parsed.data;
  const failure = Failure.safeParse(answer);
  const at = failure.success ? failure.data.errors[0]?.sourceLocations?.[0]?.start : undefined;
  // Cedar's own words quote the text.
  return refuse(at === undefined ? "it does not parse" : `it does not parse at ${place(text, at)}`, pointer);
}

/** Line and column, from 1, of an offset in UTF-8 bytes. */
function place(text: string, bytes: number): string {
  const before = new TextDecoder().decode(new TextEncoder().encode(text).subarray(0, bytes));
  const line = before.split("\n");
  return `line ${line.length}, column ${(line.at(-1) ?? "").length + 1}`;
}
