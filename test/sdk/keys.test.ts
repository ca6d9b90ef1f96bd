import { describe, expect, it } from "vitest";
import { RunsealClient } from "../../sdk/client.ts";
import { createRecoverableTenant, Keys, signProposal } from "../../sdk/keys.ts";
import { fromBase64, fromHex, toBase64, toHex } from "../../shared/bytes.ts";
import { pureCrypto } from "../../shared/crypto/pure.ts";
import { encodeRecord, OPS, ROLES } from "../../shared/registry/record.ts";
import { signedMessage } from "../../shared/signing.ts";

const signer = pureCrypto.signer(new Uint8Array(32).fill(7));
const other = pureCrypto.signer(new Uint8Array(32).fill(8));

function recordOf(changes: Partial<Parameters<typeof encodeRecord>[0]> = {}): string {
  return toBase64(
    encodeRecord({
      epoch: 1,
      prev: new Uint8Array(32),
      time: 1n,
      op: OPS.add,
      add: [{ role: ROLES.client, key: signer.publicKey }],
      retire: [],
      genesis: null,
      ...changes,
    }),
  );
}

interface Sent {
  readonly path: string;
  readonly body: Record<string, string>;
  readonly idempotency: string | null;
}

/** A client of a service that answers what it is told to. */
function clientOf(answers: unknown[]): { client: RunsealClient; sent: Sent[] } {
  const sent: Sent[] = [];
  const client = new RunsealClient({
    url: "http://service.test",
    apiKey: "k",
    fetch: (async (url: string, init: RequestInit) => {
      const idempotency = new Headers(init.headers).get("idempotency-key");
      sent.push({ path: new URL(url).pathname, body: JSON.parse(String(init.body)), idempotency });
      return new Response(JSON.stringify(answers[sent.length - 1]), { status: 200 });
    }) as typeof fetch,
  });
  return { client, sent };
}

describe("adding a key", () => {
  it("signs the proposed record, and sends no private key", async () => {
    const record = recordOf();
    const { client, sent } = clientOf([{ record, message: "00" }, { epoch: 1 }]);
    await new Keys(client).add("client", signer);
    expect(sent.map(({ path }) => path)).toEqual(["/v1/registry/proposals", "/v1/registry/keys"]);
    expect(sent[0]?.body).toEqual({ op: "add", role: "client", key: toHex(signer.publicKey) });
    const message = signedMessage("registry", pureCrypto.sha256(fromBase64(record)));
    expect(pureCrypto.verifyEd25519(signer.publicKey, message, fromHex(sent[1]?.body.signature ?? ""))).toBe(
      true,
    );
    expect(JSON.stringify(sent)).not.toContain("07".repeat(32));
  });

  it("signs nothing that it did not ask for", async () => {
    const foreign = [
      recordOf({ add: [{ role: ROLES.witness, key: signer.publicKey }] }),
      recordOf({ add: [{ role: ROLES.client, key: other.publicKey }] }),
      recordOf({ op: OPS.rotate }),
      recordOf({ op: OPS.retire, add: [], retire: [{ role: ROLES.client, key: signer.publicKey }] }),
    ];
    for (const record of foreign) {
      const { client, sent } = clientOf([{ record }, {}]);
      await expect(new Keys(client).add("client", signer)).rejects.toThrow("it is not signed");
      expect(sent).toHaveLength(1);
    }
  });
});

describe("a tenant with a recovery key", () => {
  it("takes two requests under one Idempotency-Key", async () => {
    const genesis = { record: recordOf() };
    const { client, sent } = clientOf([{ genesis }, { api_key: "a" }]);
    const options = { name: "n", recoveryKey: "ab".repeat(32), idempotencyKey: "one" };
    const tenant = await createRecoverableTenant(client, options, async (proposal) =>
      signProposal(other, proposal as never),
    );
    expect(tenant).toEqual({ api_key: "a" });
    expect(sent.map(({ idempotency }) => idempotency)).toEqual(["one", "one"]);
    expect(sent[1]?.body).toEqual({ ...sent[0]?.body, recovery_signature: signProposal(other, genesis) });
  });
});
