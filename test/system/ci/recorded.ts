/**
 * Recorded runs in a real server, for the tests of what CI does with them.
 *
 * @module
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { nativeCrypto } from "../../../native/crypto.ts";
import { RunsealClient } from "../../../sdk/client.ts";
import { canonicalJson } from "../../../shared/json/canonical.ts";
import { contentHash } from "../../../shared/recheck/hash.ts";
import { startServerProcess } from "../../support/server.ts";

/** The examples of the repository. */
export const EXAMPLES = fileURLToPath(new URL("../../../examples/", import.meta.url).href);
export const policyFile = (name: "default" | "strict"): string => join(EXAMPLES, "policies", `${name}.json`);

export interface Recorded {
  readonly url: string;
  /** The tenant's first key. */
  readonly key: string;
  /** A key with the scope recheck alone. */
  readonly recheckKey: string;
  readonly client: RunsealClient;
}

/** Starts a server, and sends the run refund-10417 of the examples to the log `bot`, and one without evaluations. */
export async function recordedRuns(): Promise<Recorded> {
  const server = await startServerProcess();
  const operator = new RunsealClient({ url: server.url, apiKey: server.operatorToken });
  const { api_key: key } = await operator.createTenant("ci");
  const client = new RunsealClient({ url: server.url, apiKey: key });
  for (const name of readdirSync(join(EXAMPLES, "tools"))) {
    const spec = readFileSync(join(EXAMPLES, "tools", name), "utf8");
    await client.request("PUT", `/v1/tools/${contentHash(nativeCrypto, canonicalJson(spec))}`, {
      body: spec,
    });
  }
  const lines = readFileSync(join(EXAMPLES, "runs", "refund-10417.ndjson"), "utf8").split("\n");
  await client.appendTexts(
    "bot",
    lines.filter((line) => line !== ""),
  );
  await client.append("bot", [{ kind: "run.created", run: "empty", action: { goal: "nothing" } }]);
  const created = await client.json<{ api_key: string }>("POST", "/v1/api-keys", {
    name: "ci",
    scopes: ["recheck"],
    principals: ["bot"],
  });
  return { url: server.url, key, recheckKey: created.api_key, client };
}
