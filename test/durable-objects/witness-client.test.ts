import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  FIRST_BACKOFF_MS,
  LONGEST_BACKOFF_MS,
  nextState,
  WitnessClient,
} from "../../durable-objects/head-log/witness-client.ts";
import { WitnessStorage } from "../../durable-objects/head-log/witness-storage.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { EMPTY_ROOT } from "../../shared/merkle/hash.ts";
import { parseCheckpoint, signCheckpoint } from "../../shared/note/checkpoint.ts";
import { cosign } from "../../shared/note/cosignature.ts";
import { formatVkey, witnessKey } from "../../shared/note/vkey.ts";
import { formatCosignatures, parseAddCheckpoint } from "../../shared/note/witness.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const log = nativeCrypto.signer(new Uint8Array(32).fill(1));
const signers = [2, 3].map((n) => nativeCrypto.signer(new Uint8Array(32).fill(n)));
const names = ["a.example", "b.example"];
const vkeys = signers.map(({ publicKey }, i) =>
  formatVkey(witnessKey(nativeCrypto, names[i] ?? "", publicKey)),
);
const WITNESSES = JSON.stringify(
  vkeys.map((vkey, i) => ({ name: names[i], url: `https://${names[i]}`, vkey })),
);

const headOf = (size: number) => ({
  size,
  checkpoint: signCheckpoint(nativeCrypto, "log.example", [log], {
    origin: "log.example",
    size,
    root: EMPTY_ROOT,
  }),
  proof: () => [],
});

/** A witness' answer, without judging anything. */
function cosigned(i: number, body: string): Response {
  const { text } = parseCheckpoint(parseAddCheckpoint(body).checkpoint);
  const signer = signers[i];
  if (signer === undefined) throw new Error("no such witness");
  return new Response(formatCosignatures([cosign(nativeCrypto, names[i] ?? "", signer, text, 5n)]));
}

let objects = 0;
/** Runs with a client whose table is in an object of its own; `answer` stands for the network. */
async function withClient(
  answer: (i: number, body: string) => Response | Promise<Response>,
  work: (
    client: WitnessClient,
    alarms: string[],
    storage: WitnessStorage,
    again: () => WitnessClient,
  ) => Promise<void>,
  setting = WITNESSES,
): Promise<void> {
  vi.spyOn(globalThis, "fetch").mockImplementation(async (url, init) =>
    answer(names.indexOf(new URL(String(url)).host), String(init?.body)),
  );
  objects += 1;
  const stub = env.HEAD_LOG.getByName(`witness-client-${objects}`);
  await runInDurableObject(stub, async (_log, state) => {
    const alarms: string[] = [];
    const { sql } = state.storage;
    const make = () =>
      new WitnessClient(sql, { ...env, WITNESSES: setting }, (detail) => alarms.push(detail));
    await work(make(), alarms, new WitnessStorage(sql), make);
  });
}

async function submitted(client: WitnessClient, size: number): Promise<void> {
  await new Promise<void>((resolve) => {
    if (client.submit(headOf(size), async () => resolve()) === null) resolve();
  });
  // The client is free for the next submission a moment after it has said that this one is done.
  await new Promise((resolve) => setTimeout(resolve, 0));
}

describe("the client of witnesses", () => {
  it("keeps each witness' cosignature for the head that it is on, over a restart", async () => {
    await withClient(cosigned, async (client, alarms, _storage, again) => {
      expect(client.dueAt(0)).toBeNull();
      expect(client.dueAt(3)).toBe(0);
      await submitted(client, 3);
      const { checkpoint } = headOf(3);
      for (const one of [client, again()]) {
        expect(one.withCosignatures(checkpoint).match(/^— [ab]\.example /gm)).toHaveLength(2);
        expect(one.withCosignatures(headOf(4).checkpoint)).toBe(headOf(4).checkpoint);
        expect(one.cosigned()).toEqual({ size: 3, checkpoint: one.withCosignatures(checkpoint) });
        expect([one.dueAt(3), one.dueAt(4) !== null]).toEqual([null, true]);
      }
      expect(alarms).toEqual([]);
    });
  });

  it("does not let one witness that is away keep the other from cosigning, and asks it again later", async () => {
    const answer = (i: number, body: string) => {
      if (i === 1) throw new Error("connect");
      return cosigned(i, body);
    };
    await withClient(answer, async (client, _alarms, storage) => {
      await submitted(client, 3);
      expect(client.view().map(({ outcome, cosignedSize }) => [outcome, cosignedSize])).toEqual([
        ["cosigned", 3],
        ["unreachable", 0],
      ]);
      const due = client.dueAt(3) ?? 0;
      expect(due - storage.get(vkeys[1] ?? "").askedAtMs).toBe(FIRST_BACKOFF_MS);
      // Not before it is due: nobody is asked.
      expect(client.submit(headOf(3), async () => {})).toBeNull();
    });
  });

  it("answers at once, asks once at a time, and asks again where an answer was lost with the object", async () => {
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const answer = async (i: number, body: string) => {
      await gate;
      return cosigned(i, body);
    };
    await withClient(answer, async (client, _alarms, _storage, again) => {
      let done = false;
      const lostAt = client.submit(headOf(3), async () => {
        done = true;
      });
      expect(done).toBe(false);
      expect(client.submit(headOf(4), async () => {})).toBeNull();
      expect(again().dueAt(3)).toBe(lostAt);
      release();
      await vi.waitFor(() => expect(done).toBe(true), 10_000);
      expect(client.cosigned()?.size).toBe(3);
    });
  });

  it.each([
    ["ahead", () => new Response("9\n", { status: 409, headers: { "content-type": "text/x.tlog.size" } })],
    ["inconsistent", () => new Response(null, { status: 422 })],
  ])("raises an alarm where a witness disagrees: %s", async (outcome, answer) => {
    await withClient(answer, async (client, alarms) => {
      await submitted(client, 3);
      expect(client.view().map((one) => one.outcome)).toEqual([outcome, outcome]);
      expect(alarms).toHaveLength(2);
      expect(alarms[0]).toContain(outcome);
    });
  });

  it("stores no cosignature that does not verify", async () => {
    // Each answers with what the other would say.
    await withClient(
      (i, body) => cosigned(1 - i, body),
      async (client) => {
        await submitted(client, 3);
        expect(client.view().map(({ outcome }) => outcome)).toEqual(["bad-cosignature", "bad-cosignature"]);
        expect([client.cosigned(), client.withCosignatures("x")]).toEqual([null, "x"]);
      },
    );
  });

  it("goes on without witnesses where the setting can't be read, and says so", async () => {
    await withClient(
      cosigned,
      async (client) => {
        expect(client.misconfigured).toContain("WITNESSES");
        expect([client.view(), client.dueAt(3)]).toEqual([[], null]);
      },
      "[{]",
    );
  });
});

describe("the pause before a witness is asked again", () => {
  const before = { ...fresh(), vkey: "v" };
  function fresh() {
    return {
      known: 0,
      outcome: null,
      askedAtMs: 0,
      nextAtMs: 0,
      failures: 0,
      cosignedSize: 0,
      cosignedAtMs: 0,
      checkpoint: "",
      cosignature: "",
    };
  }
  const refused = { outcome: "unknown-log", size: 0, cosignature: null, pauseMs: 0 } as const;

  it("doubles with each failure up to ten minutes, is no shorter than asked for, and ends with a cosignature", () => {
    const pauses: number[] = [];
    let state: ReturnType<typeof nextState> = before;
    for (let i = 0; i < 9; i++) {
      state = nextState(state, refused, headOf(1), 1000);
      pauses.push(state.nextAtMs - 1000);
    }
    expect(pauses).toEqual([5, 10, 20, 40, 80, 160, 320, 600, 600].map((s) => s * 1000));
    expect(pauses.at(-1)).toBe(LONGEST_BACKOFF_MS);
    const busy = { ...refused, outcome: "busy", pauseMs: 3_600_000 } as const;
    expect(nextState(before, busy, headOf(1), 1000).nextAtMs).toBe(3_601_000);
    const good = { outcome: "cosigned", size: 1, cosignature: "line\n", pauseMs: 0 } as const;
    expect(nextState(state, good, headOf(1), 1000)).toMatchObject({ failures: 0, known: 1, cosignedSize: 1 });
  });
});
