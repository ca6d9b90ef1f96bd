import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex } from "../../shared/bytes.ts";
import { problemOf } from "../durable-objects/support.ts";
import { newSigner } from "./registry-support.ts";
import type { Answer } from "./support.ts";
import { call } from "./support.ts";

const operator = env.RUNSEAL_OPERATOR_TOKEN;
let keys = 0;
const freshKey = (): string => `tenants-${++keys}`;

function create(body: unknown, key: string): Promise<Answer> {
  return call(operator, "POST", "/v1/tenants", body, { "idempotency-key": key });
}

function idOf(answer: Answer): string {
  return (answer.body as unknown as { tenant: { id: string } }).tenant.id;
}

describe("a tenant that is created with an Idempotency-Key", () => {
  const body = { name: "acme", limits: { entries_per_minute: 5, principals: 3 } };

  it("is answered again with the same first key, whatever the order of the members", async () => {
    const key = freshKey();
    const first = await create(body, key);
    expect(first.status).toBe(201);
    const again = await create({ limits: { principals: 3, entries_per_minute: 5 }, name: "acme" }, key);
    expect([again.status, again.body]).toEqual([201, first.body]);
    expect((await call(String(again.body.api_key), "GET", "/v1/limits")).status).toBe(200);
  });

  it.each([
    ["name", { ...body, name: "other" }],
    ["limit", { ...body, limits: { entries_per_minute: 6, principals: 3 } }],
    ["limits", { name: "acme" }],
    [
      "recovery key",
      { ...body, recovery_key: toHex(newSigner().publicKey), recovery_signature: "00".repeat(64) },
    ],
  ])(
    "refuses another %s under the key, and changes nothing, also in a directory that restarted",
    async (_what, other) => {
      const key = freshKey();
      const first = await create(body, key);
      for (let i = 0; i < 2; i++) {
        const refused = await create(other, key);
        expect([refused.status, problemOf(refused)]).toEqual([422, "idempotency-mismatch"]);
        expect(refused.text).not.toContain(String(first.body.api_key));
        await evictDurableObject(env.TENANT_DIRECTORY.getByName(idOf(first)));
      }
      const limits = await call(operator, "GET", `/v1/tenants/${idOf(first)}/limits`);
      expect(limits.body.limits).toMatchObject({ entries_per_minute: 5, principals: 3 });
      expect((await create(body, key)).body).toEqual(first.body);
    },
  );

  it("is one where the same request comes many times at once", async () => {
    const key = freshKey();
    const answers = await Promise.all(Array.from({ length: 4 }, () => create(body, key)));
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  });

  it("is that of one request where two different ones come at once", async () => {
    const key = freshKey();
    const answers = await Promise.all([create(body, key), create({ ...body, name: "other" }, key)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 422]);
    const made = answers.find(({ status }) => status === 201);
    const name = (made?.body as unknown as { tenant: { name: string } } | undefined)?.tenant.name;
    expect((await create({ ...body, name }, key)).body).toEqual(made?.body);
  });

  it("is compared by its name where it was stored without its request", async () => {
    const key = freshKey();
    const first = await create(body, key);
    await runInDurableObject(env.TENANT_DIRECTORY.getByName(idOf(first)), (_object, { storage }) => {
      storage.sql.exec("DELETE FROM creation");
    });
    expect((await create(body, key)).body).toEqual(first.body);
    expect((await create({ ...body, name: "other" }, key)).status).toBe(422);
    expect((await create(body, key)).body).toEqual(first.body);
  });

  it("keeps of its request no hash that could be made without the master key", async () => {
    const first = await create(body, freshKey());
    const stored = await runInDurableObject(
      env.TENANT_DIRECTORY.getByName(idOf(first)),
      (_object, { storage }) => [...storage.sql.exec("SELECT hex(fingerprint) AS text FROM creation")],
    );
    const other = await create(body, freshKey());
    const foreign = await runInDurableObject(
      env.TENANT_DIRECTORY.getByName(idOf(other)),
      (_object, { storage }) => [...storage.sql.exec("SELECT hex(fingerprint) AS text FROM creation")],
    );
    expect(stored).toHaveLength(1);
    expect(stored).not.toEqual(foreign);
    const plain = nativeCrypto.sha256(new TextEncoder().encode(JSON.stringify(body)));
    expect(stored).not.toEqual([{ text: toHex(plain).toUpperCase() }]);
  });
});
