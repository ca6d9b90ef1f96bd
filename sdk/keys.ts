/**
 * The key registry from a client's side: keys that the client holds sign here, and their private part is never sent.
 *
 *     const keys = new Keys(client);
 *     await keys.add("client", signer);
 *     const text = keys.signEntry(JSON.stringify(entry), await keys.logId("agent-7"), signer);
 *     await client.appendTexts("agent-7", [text]);
 *
 * @module
 */
import type { z } from "zod";
import type { PrincipalOut, ProposalOut, RegistryRecordOut, TenantAnswer } from "../shared/api/schemas.ts";
import { equalBytes, fromBase64, fromHex, toHex } from "../shared/bytes.ts";
import type { Signer } from "../shared/crypto/port.ts";
import { pureCrypto } from "../shared/crypto/pure.ts";
import { computeLogId } from "../shared/entry/log-id.ts";
import { signEntry } from "../shared/entry/sign.ts";
import { RunsealError } from "../shared/errors.ts";
import type { OpenRole } from "../shared/registry/record.ts";
import { decodeRecord, OPS, ROLES } from "../shared/registry/record.ts";
import { signedMessage } from "../shared/signing.ts";
import type { RunsealClient } from "./client.ts";
import { withId } from "./client.ts";

export type RegistryRecordOutput = z.infer<typeof RegistryRecordOut>;
export type Proposal = z.infer<typeof ProposalOut>;

/** The signature over a proposal, hex. What is signed is made from the record, not taken from the answer. */
export function signProposal(signer: Signer, { record }: Pick<Proposal, "record">): string {
  return toHex(signer.sign(signedMessage("registry", pureCrypto.sha256(fromBase64(record)))));
}

export class Keys {
  readonly #client: RunsealClient;

  constructor(client: RunsealClient) {
    this.#client = client;
  }

  /**
   * Registers a key in a role.
   *
   * @throws `ProblemError`, `registry-moved` where another record came first; `RunsealError("foreign-proposal")` where
   * the service proposes another record than was asked for
   */
  async add(role: OpenRole, signer: Signer): Promise<RegistryRecordOutput> {
    const body = { op: "add", role, key: toHex(signer.publicKey) };
    const proposal = await this.#client.json<Proposal>("POST", "/v1/registry/proposals", body);
    const { op, add } = decodeRecord(fromBase64(proposal.record));
    const [binding] = add;
    const asked = op === OPS.add && add.length === 1 && binding?.role === ROLES[role];
    if (!asked || !equalBytes(binding.key, signer.publicKey)) {
      throw new RunsealError("foreign-proposal", "the proposed record does something else: it is not signed");
    }
    return this.#client.json("POST", "/v1/registry/keys", {
      record: proposal.record,
      signature: signProposal(signer, proposal),
    });
  }

  /** Takes a key's role away. @param key hex */
  retire(key: string): Promise<RegistryRecordOutput> {
    return this.#client.json("DELETE", `/v1/registry/keys/${key}`);
  }

  /** Replaces a key that the service holds. */
  rotate(role: "audit" | "log"): Promise<RegistryRecordOutput> {
    return this.#client.json("POST", "/v1/registry/rotations", { role });
  }

  /** The record that replaces a managed key, for the offline recovery key to sign. */
  proposeRecovery(role: "audit" | "log"): Promise<Proposal> {
    return this.#client.json("POST", "/v1/registry/proposals", { op: "recover", role });
  }

  /** Sends a recovery. @param signature hex, by the recovery key */
  recover(record: string, signature: string): Promise<RegistryRecordOutput> {
    return this.#client.json("POST", "/v1/registry/recoveries", { record, signature });
  }

  /** The id of a principal's log, which an entry's signature names; makes the principal where the key may. */
  async logId(principal: string): Promise<Uint8Array> {
    const { id, generation } = await this.#client.json<z.infer<typeof PrincipalOut>>(
      "POST",
      "/v1/principals",
      { name: principal },
    );
    const { registry_id: registryId } = await this.#client.registry();
    return computeLogId(pureCrypto, fromHex(registryId, 32), id, generation);
  }

  /** The entry's text with salts, an id where it has none, and the signature. */
  signEntry(text: string, logId: Uint8Array, signer: Signer): string {
    const random = (count: number): Uint8Array => crypto.getRandomValues(new Uint8Array(count));
    return signEntry(withId(text), { crypto: pureCrypto, logId, signer, random });
  }
}

/**
 * Creates a tenant whose genesis binds an offline recovery key; the client holds the operator's token.
 *
 * @param sign answers the recovery key's signature over the proposal, hex; it may ask somebody elsewhere
 * @param idempotencyKey the same for both requests: it names the tenant-to-be
 */
export async function createRecoverableTenant(
  client: RunsealClient,
  options: { readonly name: string; readonly recoveryKey: string; readonly idempotencyKey: string },
  sign: (genesis: Proposal) => Promise<string>,
): Promise<z.infer<typeof TenantAnswer>> {
  const body = { name: options.name, recovery_key: options.recoveryKey };
  const send = async <T>(value: unknown): Promise<T> => {
    const response = await client.request("POST", "/v1/tenants", {
      body: JSON.stringify(value),
      headers: { "idempotency-key": options.idempotencyKey },
    });
    return (await response.json()) as T;
  };
  const draft = await send<{ genesis: Proposal } | z.infer<typeof TenantAnswer>>(body);
  if ("api_key" in draft) return draft;
  return send({ ...body, recovery_signature: await sign(draft.genesis) });
}
