/**
 * The demo: the whole product on recorded runs, as a story that a person can follow. Each step is checked; one that
 * does not hold fails the demo.
 *
 * @module
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { nativeCrypto } from "../../native/crypto.ts";
import type { HeadAnswer } from "../../sdk/client.ts";
import { RunsealClient } from "../../sdk/client.ts";
import { fromBase64, toBase64 } from "../../shared/bytes.ts";
import { BundleVerifier } from "../../shared/verify/bundle.ts";
import type { DemoTenant } from "./tenant.ts";
import { demoTenant } from "./tenant.ts";

export interface DemoOptions {
  readonly url: string;
  readonly operatorToken: string;
  readonly stateDir: string;
  readonly log: (line: string) => void;
  /** Whether the service is still there once the story is told: then its address and key are of use. */
  readonly stays: boolean;
}

const EXAMPLES = fileURLToPath(new URL("../../examples/", import.meta.url).href);

interface RecheckAnswer {
  readonly same: boolean;
  readonly differences: number;
  readonly rechecked: number;
}

interface SampleRun {
  readonly name: string;
  readonly principal: string;
  readonly run: string;
  readonly lines: readonly string[];
}

function sampleRuns(): SampleRun[] {
  const folder = join(EXAMPLES, "runs");
  return readdirSync(folder)
    .filter((file) => file.endsWith(".ndjson"))
    .sort()
    .map((file) => {
      const lines = readFileSync(join(folder, file), "utf8")
        .split("\n")
        .filter((line) => line !== "");
      const first = JSON.parse(lines[0] ?? "{}") as { run: string };
      const name = file.replace(/\.ndjson$/, "");
      return { name, principal: name, run: first.run, lines };
    });
}

/** A step that must hold. */
class Story {
  readonly #log: (line: string) => void;
  #failed = 0;

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  get holds(): boolean {
    return this.#failed === 0;
  }

  say(text = ""): void {
    this.#log(text);
  }

  title(text: string): void {
    this.#log("");
    this.#log(text);
  }

  check(what: string, holds: boolean): void {
    if (!holds) this.#failed += 1;
    this.#log(`   ${holds ? "ok  " : "FAIL"}  ${what}`);
  }
}

/** Tells the story against a running service; answers whether every step held. */
export async function runDemo(options: DemoOptions): Promise<boolean> {
  const story = new Story(options.log);
  const tenant = await demoTenant(options);
  const client = new RunsealClient({ url: options.url, apiKey: tenant.apiKey });
  story.title("1. A tenant, with a key registry of its own");
  story.say(`   registry id  ${tenant.registryId}`);
  const runs = sampleRuns();
  await putTools(client);
  story.title("2. Recorded runs go in: each entry gets a receipt, each answer carries a signed head");
  for (const run of runs) await sendRun(story, client, run);
  story.title("3. The service walks what it stored");
  for (const run of runs) await verifyRun(story, client, run);
  story.title("4. The same runs under the policy that they were recorded with, and under a stricter one");
  for (const run of runs) await recheckRun(story, client, run);
  const [sample] = runs;
  if (sample !== undefined) {
    story.title("5. A copy of the stored log leaves the service; one entry in the copy is altered");
    await tamper(story, client, tenant, sample);
  }
  story.title(story.holds ? "Every step held." : "A step did not hold.");
  if (options.stays) {
    story.title("Go on from here, in another terminal:");
    story.say(`   export RUNSEAL_URL=${options.url}`);
    story.say(`   export RUNSEAL_API_KEY=${tenant.apiKey}`);
    story.say(`   curl -s -H "Authorization: Bearer $RUNSEAL_API_KEY" "$RUNSEAL_URL/v1/principals"`);
    story.say();
  }
  return story.holds;
}

async function putTools(client: RunsealClient): Promise<void> {
  const folder = join(EXAMPLES, "tools");
  const { canonicalJson } = await import("../../shared/json/canonical.ts");
  const { toHex, utf8 } = await import("../../shared/bytes.ts");
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".json"))) {
    const canonical = canonicalJson(readFileSync(join(folder, file), "utf8"));
    const hash = toHex(nativeCrypto.sha256(utf8(canonical)));
    await client.request("PUT", `/v1/tools/${hash}`, { body: canonical });
  }
}

async function sendRun(story: Story, client: RunsealClient, run: SampleRun): Promise<void> {
  const { results, head } = await client.appendTexts(run.principal, run.lines);
  const first = results[0];
  const last = results.at(-1);
  const refused = results.filter((result) => result.error !== undefined);
  for (const result of refused)
    story.say(`   ${result.id}: ${result.error?.title} ${result.error?.pointer ?? ""}`);
  story.check(
    `${run.name}: ${results.length} entries stored, seq ${first?.seq} to ${last?.seq}`,
    refused.length === 0,
  );
  story.say(`         last receipt  ${last?.seq} ${last?.hash}`);
  story.say(`         signed head   ${head.size} entries, root ${head.root}`);
}

async function verifyRun(story: Story, client: RunsealClient, run: SampleRun): Promise<void> {
  const head: HeadAnswer = await client.head(run.principal);
  const report = await client.verify(run.principal, { head: `${head.seq}:${head.hash}` });
  story.check(
    `${run.name}: ${report.verdict}, ${report.checked} entries, kept head matches`,
    report.verdict === "intact" && report.kept_head?.matches === true,
  );
}

async function recheckRun(story: Story, client: RunsealClient, run: SampleRun): Promise<void> {
  const path = `/v1/principals/${run.principal}/runs/${run.run}/recheck`;
  const body = (name: string): string => {
    const policy = readFileSync(join(EXAMPLES, "policies", `${name}.json`), "utf8");
    return `{"policy":{"rules":${policy}}}`;
  };
  const ask = async (name: string): Promise<RecheckAnswer> =>
    (await (await client.request("POST", path, { body: body(name) })).json()) as RecheckAnswer;
  const recorded = await ask("default");
  story.check(
    `${run.name}: same under the recorded policy, ${recorded.rechecked} decisions re-checked`,
    recorded.same && recorded.rechecked > 0,
  );
  const strict = await ask("strict");
  story.check(
    `${run.name}: the stricter policy decides ${strict.differences} of them otherwise`,
    strict.differences > 0,
  );
  const text = await (await client.request("POST", `${path}?format=text`, { body: body("strict") })).text();
  for (const line of text.split("\n").filter((one) => one.startsWith("DIFFERENT")))
    story.say(`         ${line}`);
}

async function tamper(
  story: Story,
  client: RunsealClient,
  tenant: DemoTenant,
  run: SampleRun,
): Promise<void> {
  const bundle = await (await client.export(run.principal)).text();
  const intact = verifyLines(bundle.split("\n"), tenant.registryId);
  story.check(
    `the copy verifies offline under the pinned registry id: ${intact.verdict}, ${intact.checked} entries`,
    intact.verdict === "intact" && intact.pinned === true,
  );
  const lines = bundle.split("\n");
  const leaves = lines.flatMap((line, index) => (line.startsWith('{"t":"leaf"') ? [index] : []));
  const target = leaves[Math.floor(leaves.length / 2)] ?? 0;
  const line = JSON.parse(lines[target] ?? "{}") as { seq: number; leaf: string };
  const leaf = fromBase64(line.leaf);
  // One bit, in the middle of the entry: that is enough.
  const middle = Math.floor(leaf.length / 2);
  leaf[middle] = (leaf[middle] ?? 0) ^ 1;
  lines[target] = JSON.stringify({ ...line, leaf: toBase64(leaf) });
  const broken = verifyLines(lines, tenant.registryId);
  story.check(
    `one bit of entry ${line.seq} flipped: ${broken.verdict} at entry ${broken.break?.seq}, ${broken.break?.verdict}`,
    broken.verdict === "broken" && broken.break?.seq === line.seq,
  );
  story.say(`         expected  ${broken.break?.expected}`);
  story.say(`         found     ${broken.break?.found}`);
}

function verifyLines(lines: readonly string[], registryId: string): ReturnType<BundleVerifier["finish"]> {
  const verifier = new BundleVerifier(nativeCrypto, { registryId, verifiedBy: "the demo, offline" });
  for (const line of lines) verifier.line(line);
  return verifier.finish();
}
