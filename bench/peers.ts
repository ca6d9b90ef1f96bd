/**
 * Signed append-only logs from npm to be measured beside: hypercore (a Merkle tree, one signature an append of many
 * blocks; in memory) and Secure Scuttlebutt's feeds (a hash chain, one signature a message). They are installed into
 * bench/peers when they are first needed; without a network the bench goes on without them and says so.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export interface Peer {
  readonly name: string;
  append(texts: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

const folder = fileURLToPath(new URL("./peers", import.meta.url).href);

interface Hypercore {
  ready(): Promise<void>;
  append(blocks: readonly Uint8Array[]): Promise<unknown>;
  close(): Promise<void>;
}

interface FeedValidator {
  initial(): object;
  appendNew(state: object, hmac: null, keys: object, content: object, time: number): object;
}

/** The peers that are there or can be installed. */
export async function openPeers(): Promise<Peer[]> {
  try {
    if (!existsSync(join(folder, "node_modules"))) {
      execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], { cwd: folder });
    }
    return [await hypercore(), scuttlebutt()];
  } catch {
    process.stderr.write("The peers could not be installed: measured without them.\n");
    return [];
  }
}

async function hypercore(): Promise<Peer> {
  const require = createRequire(join(folder, "package.json"));
  const Log = require("hypercore") as new (storage: unknown) => Hypercore;
  const core = new Log(require("random-access-memory"));
  await core.ready();
  return {
    name: "hypercore",
    append: async (texts) => {
      await core.append(texts.map((text) => Buffer.from(text)));
    },
    close: () => core.close(),
  };
}

function scuttlebutt(): Peer {
  const require = createRequire(join(folder, "package.json"));
  const feeds = require("ssb-validate") as FeedValidator;
  const keys = (require("ssb-keys") as { generate(): object }).generate();
  let state = feeds.initial();
  let time = Date.now();
  return {
    name: "ssb-validate",
    append: async (texts) => {
      for (const text of texts) {
        time += 1;
        state = feeds.appendNew(
          state,
          null,
          keys,
          { type: "entry", entry: JSON.parse(text) as object },
          time,
        );
      }
    },
    close: async () => {},
  };
}
