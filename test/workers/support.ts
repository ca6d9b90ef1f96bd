/**
 * A client of the Worker under test, and entries to send it.
 *
 * @module
 */
import { env, exports } from "cloudflare:workers";

export interface TestTenant {
  readonly id: string;
  readonly registryId: string;
  readonly key: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // Tests look into answers freely; the contract test checks their shapes.
  readonly body: Record<string, never> & Record<string, unknown>;
}

/** Any request; a value becomes JSON, a string is sent as it is. */
export async function call(
  key: string | null,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await exports.default.fetch(`http://runseal.test${path}`, {
    method,
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined
      ? {}
      : { body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  let parsed: unknown = null;
  try {
    parsed = JSON.parse(text);
  } catch {
    // Not every answer is JSON.
  }
  return { status: response.status, headers: response.headers, text, body: parsed as Answer["body"] };
}

/** A new tenant with its first admin key. */
export async function newTenant(name = "tenant"): Promise<TestTenant> {
  const { status, body, text } = await call(env.RUNSEAL_OPERATOR_TOKEN, "POST", "/v1/tenants", { name });
  if (status !== 201) throw new Error(`tenant: ${status} ${text}`);
  const answer = body as unknown as { tenant: { id: string }; registry_id: string; api_key: string };
  return { id: answer.tenant.id, registryId: answer.registry_id, key: answer.api_key };
}

/** A further key of the tenant. */
export async function newKey(
  tenant: TestTenant,
  scopes: string[],
  principals: string[] = ["*"],
): Promise<string> {
  const { status, body, text } = await call(tenant.key, "POST", "/v1/api-keys", {
    name: "test",
    scopes,
    principals,
  });
  if (status !== 201) throw new Error(`key: ${status} ${text}`);
  return String(body.api_key);
}

let counter = 0;

/** A valid entry. */
export function entry(overrides: Record<string, unknown> = {}): Record<string, unknown> {
  counter += 1;
  return {
    id: `e-${counter}`,
    kind: "tool.call.started",
    run: "run-1",
    step: "s1",
    call: `c-${counter}`,
    action: { tool: "read_file", args: { path: `/tmp/${counter}` } },
    ...overrides,
  };
}

export function entries(count: number): Record<string, unknown>[] {
  return Array.from({ length: count }, () => entry());
}
