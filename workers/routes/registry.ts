/**
 * Changes of the key registry: keys that others hold are added and retired, keys that the service holds are rotated, or
 * replaced by means of the offline recovery key. docs/keys.md has the flows.
 *
 * @module
 */
import { z } from "zod";
import type {
  ProposalOutcome,
  RecordOutcome,
  RegistryEntry,
  RegistryRefusal,
} from "../../durable-objects/key-registry/types.ts";
import {
  Hash,
  ProposalIn,
  ProposalOut,
  RegistryRecordOut,
  RotationIn,
  SignedRecordIn,
} from "../../shared/api/schemas.ts";
import { formatTime } from "../../shared/time.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, tenantRoute } from "../http/route.ts";
import { forgetRegistry } from "../logs/registry.ts";

/** A record as the API answers it. */
export function recordOut(entry: RegistryEntry): z.infer<typeof RegistryRecordOut> {
  return {
    epoch: entry.epoch,
    record: entry.record,
    signatures: entry.signatures.map(({ key, signature }) => ({ key, signature })),
    effective_at: formatTime(BigInt(entry.effectiveAt) * 1_000_000n),
  };
}

/** Turns a registry's refusal into the problem that the caller sees. */
export function registryProblem({ code, detail, pointer }: RegistryRefusal): Problem {
  return new Problem(code, {
    detail,
    ...(pointer === undefined ? {} : { pointer }),
    ...(code === "registry-unavailable" ? { retryAfter: 2 } : {}),
  });
}

function answer(tenant: string, outcome: RecordOutcome): Response {
  if (!outcome.ok) throw registryProblem(outcome);
  forgetRegistry(tenant);
  return json(recordOut(outcome.entry), outcome.repeated ? 200 : 201);
}

const RECORDED = {
  201: { description: "the record, published", schema: RegistryRecordOut },
  200: { description: "the record, published before", schema: RegistryRecordOut },
} as const;

const propose = tenantRoute(
  {
    method: "POST",
    path: "/v1/registry/proposals",
    operation: "proposeRecord",
    tag: "keys",
    scope: "keys",
    summary: "Make the next registry record, for a key that the service does not hold to sign",
    description:
      "op add: the added key signs, then POST /v1/registry/keys. op recover: the service makes a new key, the recovery key signs, then POST /v1/registry/recoveries. A proposal fits until the registry gets another record, for a day at most.",
    body: ProposalIn,
    answers: { 200: { description: "the record and what is to be signed", schema: ProposalOut } },
  },
  async ({ env, caller, body }) => {
    const registry = env.KEY_REGISTRY.getByName(caller.tenant.id);
    const outcome: ProposalOutcome =
      body.op === "add"
        ? await registry.proposeKey(body.role, body.key)
        : await registry.proposeRecovery(caller.tenant.id, body.role);
    if (!outcome.ok) throw registryProblem(outcome);
    return json(outcome.proposal);
  },
);

const addKey = tenantRoute(
  {
    method: "POST",
    path: "/v1/registry/keys",
    operation: "addKey",
    tag: "keys",
    scope: "keys",
    summary: "Add a key of role client, witness, astrid_audit or astrid_v1: a proposal, signed by the key",
    body: SignedRecordIn,
    answers: RECORDED,
  },
  async ({ env, caller, body }) => {
    const { id } = caller.tenant;
    const registry = env.KEY_REGISTRY.getByName(id);
    return answer(id, await registry.addKey(id, caller.key.id, body.record, body.signature));
  },
);

const retireKey = tenantRoute(
  {
    method: "DELETE",
    path: "/v1/registry/keys/{key}",
    operation: "retireKey",
    tag: "keys",
    scope: "keys",
    summary: "Retire a key that was added: it takes effect everywhere within a minute",
    params: z.object({ key: Hash }),
    answers: RECORDED,
  },
  async ({ env, caller, params }) => {
    const { id } = caller.tenant;
    const registry = env.KEY_REGISTRY.getByName(id);
    return answer(id, await registry.retireKey(id, caller.key.id, params.key));
  },
);

const rotate = tenantRoute(
  {
    method: "POST",
    path: "/v1/registry/rotations",
    operation: "rotateKey",
    tag: "keys",
    scope: "keys",
    summary: "Replace the audit key or the log key by a new one, which signs from effective_at on",
    body: RotationIn,
    answers: RECORDED,
  },
  async ({ env, caller, body }) => {
    const { id } = caller.tenant;
    const registry = env.KEY_REGISTRY.getByName(id);
    return answer(id, await registry.rotate(id, caller.key.id, body.role));
  },
);

const recover = tenantRoute(
  {
    method: "POST",
    path: "/v1/registry/recoveries",
    operation: "recoverKey",
    tag: "keys",
    scope: "keys",
    summary: "Replace the audit key or the log key by means of the recovery key: a proposal, signed by it",
    body: SignedRecordIn,
    answers: RECORDED,
  },
  async ({ env, caller, body }) => {
    const { id } = caller.tenant;
    const registry = env.KEY_REGISTRY.getByName(id);
    return answer(id, await registry.recover(id, caller.key.id, body.record, body.signature));
  },
);

export const registryRoutes: readonly Route[] = [propose, addKey, retireKey, rotate, recover];
