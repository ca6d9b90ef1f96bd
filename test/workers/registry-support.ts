/**
 * Keys that a tenant holds itself, and the two steps in which the registry takes them.
 *
 * @module
 */
import { env } from "cloudflare:workers";
import { nativeCrypto } from "../../native/crypto.ts";
import { fromHex, toHex } from "../../shared/bytes.ts";
import type { Signer } from "../../shared/crypto/port.ts";
import type { Answer, TestTenant } from "./support.ts";
import { call } from "./support.ts";

/** A key that nobody has yet. */
export function newSigner(): Signer {
  return nativeCrypto.signer(crypto.getRandomValues(new Uint8Array(32)));
}

export interface ProposalBody {
  readonly epoch: number;
  readonly record: string;
  readonly hash: string;
  readonly message: string;
}

/** The proposal with its signature, as the second step sends it. */
export function signed(
  signer: Signer,
  { record, message }: ProposalBody,
): { record: string; signature: string } {
  return { record, signature: toHex(signer.sign(fromHex(message))) };
}

export async function propose(tenant: TestTenant, body: unknown): Promise<ProposalBody> {
  const answer = await call(tenant.key, "POST", "/v1/registry/proposals", body);
  if (answer.status !== 200) throw new Error(`proposal: ${answer.status} ${answer.text}`);
  return answer.body as unknown as ProposalBody;
}

/** Adds a key in both steps. */
export async function addKey(
  tenant: TestTenant,
  signer = newSigner(),
  role = "client",
): Promise<{ signer: Signer; key: string; answer: Answer }> {
  const key = toHex(signer.publicKey);
  const proposal = await propose(tenant, { op: "add", role, key });
  const answer = await call(tenant.key, "POST", "/v1/registry/keys", signed(signer, proposal));
  return { signer, key, answer };
}

let count = 0;

/** A tenant whose genesis binds an offline recovery key. */
export async function newTenantWithRecovery(): Promise<{ recovery: Signer; tenant: TestTenant }> {
  const recovery = newSigner();
  count += 1;
  const headers = { "idempotency-key": `recoverable-${count}-${toHex(recovery.publicKey)}` };
  const body = { name: "recoverable", recovery_key: toHex(recovery.publicKey) };
  const draft = await call(env.RUNSEAL_OPERATOR_TOKEN, "POST", "/v1/tenants", body, headers);
  if (draft.status !== 202) throw new Error(`draft: ${draft.status} ${draft.text}`);
  const { genesis } = draft.body as unknown as { genesis: ProposalBody };
  const again = { ...body, recovery_signature: signed(recovery, genesis).signature };
  const created = await call(env.RUNSEAL_OPERATOR_TOKEN, "POST", "/v1/tenants", again, headers);
  if (created.status !== 201) throw new Error(`tenant: ${created.status} ${created.text}`);
  const answer = created.body as unknown as { tenant: { id: string }; registry_id: string; api_key: string };
  if (answer.registry_id !== genesis.hash)
    throw new Error("the registry id is not the drafted genesis' hash");
  return { recovery, tenant: { id: answer.tenant.id, registryId: answer.registry_id, key: answer.api_key } };
}

/** Replaces a managed key by means of the recovery key. */
export async function recoverKey(tenant: TestTenant, recovery: Signer, role = "audit"): Promise<Answer> {
  const proposal = await propose(tenant, { op: "recover", role });
  return call(tenant.key, "POST", "/v1/registry/recoveries", signed(recovery, proposal));
}
