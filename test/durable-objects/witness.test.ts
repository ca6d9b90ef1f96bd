import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { WITNESS } from "../../durable-objects/witness/types.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex, utf8 } from "../../shared/bytes.ts";
import { RightEdge } from "../../shared/merkle/edge.ts";
import { consistencyNodes, foldProof } from "../../shared/merkle/proof.ts";
import { signCheckpoint } from "../../shared/note/checkpoint.ts";
import { openNote } from "../../shared/note/signed-note.ts";
import { formatVkey, logKey, parseVkey } from "../../shared/note/vkey.ts";
import { formatAddCheckpoint } from "../../shared/note/witness.ts";
import type { Answer } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import { problemOf } from "./support.ts";

const crypto = nativeCrypto;
const signer = crypto.signer(new Uint8Array(32).fill(7));
const vkeyOf = (origin: string) => formatVkey(logKey(crypto, origin, signer.publicKey));

const leaf = (branch: string, i: number) => crypto.sha256(utf8(`${branch}/${i}`));
function edge(branch: string, begin: number, end: number): RightEdge {
  const made = new RightEdge(crypto);
  for (let i = begin; i < end; i++) made.append(leaf(branch, i));
  return made;
}
function proofOf(branch: string, from: number, to: number): Uint8Array[] {
  if (from === 0 || from === to) return [];
  const plan = consistencyNodes(from, to);
  const nodes = plan.nodes.map(({ level, index }) =>
    edge(branch, index * 2 ** level, (index + 1) * 2 ** level).root(),
  );
  return foldProof(crypto, plan, nodes);
}

/** A log of somebody else, whose branches share nothing. */
class OtherLog {
  readonly origin: string;
  constructor(origin: string) {
    this.origin = origin;
  }
  static async watched(origin: string): Promise<OtherLog> {
    const { status } = await configure({ origin, vkeys: [vkeyOf(origin)] });
    expect(status).toBe(200);
    return new OtherLog(origin);
  }
  checkpoint(size: number, branch = "main", by = signer): string {
    const { origin } = this;
    return signCheckpoint(crypto, origin, [by], { origin, size, root: edge(branch, 0, size).root() });
  }
  submit(oldSize: number, size: number, branch = "main"): Promise<Answer> {
    const proof = oldSize <= size ? proofOf(branch, oldSize, size) : [];
    return add(formatAddCheckpoint({ oldSize, proof, checkpoint: this.checkpoint(size, branch) }));
  }
}

const configure = (body: unknown) => call(env.RUNSEAL_OPERATOR_TOKEN, "PUT", "/v1/witnessed-logs", body);
const add = (body: string | Uint8Array) => call(null, "POST", "/add-checkpoint", body);
const witnessKey = async () => parseVkey(crypto, (await call(null, "GET", "/witness/key")).text.trim());

/** The cosignature's time, in POSIX seconds; fails where it does not verify on the checkpoint. */
async function verified(answer: Answer, checkpoint: string): Promise<bigint | null | undefined> {
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/plain; charset=utf-8"]);
  const opened = openNote(crypto, checkpoint + answer.text, [await witnessKey()]);
  expect(opened.verified).toHaveLength(1);
  return opened.verified[0]?.timestamp;
}

describe("the witness", () => {
  it("cosigns each head that goes on from the last, with its time, under the key that it publishes", async () => {
    const log = await OtherLog.watched("other.example/steps");
    for (const [from, to] of [
      [0, 1],
      [1, 5],
      [5, 5],
      [5, 300],
    ] as const) {
      const before = BigInt(Math.floor(Date.now() / 1000));
      const time = await verified(await log.submit(from, to), log.checkpoint(to));
      expect(time).toBeGreaterThanOrEqual(before);
    }
    expect((await witnessKey()).name).toBe(`${env.LOG_HOST}/witness`);
  });

  it("answers what the specification demands to everything else, and moves for none of it", async () => {
    const log = await OtherLog.watched("other.example/refusals");
    await log.submit(0, 8);
    const conflict = await log.submit(3, 9);
    expect([conflict.status, conflict.headers.get("content-type"), conflict.text]).toEqual([
      409,
      "text/x.tlog.size",
      "8\n",
    ]);
    const fork = await log.submit(8, 8, "fork");
    expect([fork.status, fork.text]).toEqual([409, "8\n"]);
    const inconsistent = await log.submit(8, 12, "fork");
    expect([inconsistent.status, problemOf(inconsistent)]).toEqual([422, "inconsistent-checkpoint"]);
    // An old size over the checkpoint's is malformed, before anything is said of what the witness has.
    expect((await log.submit(8, 7)).status).toBe(400);
    const stranger = crypto.signer(new Uint8Array(32).fill(9));
    const untrusted = await add(`old 8\n\n${log.checkpoint(8, "main", stranger)}`);
    expect([untrusted.status, problemOf(untrusted)]).toEqual([403, "untrusted-checkpoint"]);
    const unknown = await new OtherLog("other.example/unknown").submit(0, 1);
    expect([unknown.status, problemOf(unknown)]).toEqual([404, "unknown-log"]);
    for (const body of ["", "old\n", "old 8\n", "old 08\n\n", "old 8\n\nno note\n", "old 8\nx\n\nx\n"]) {
      expect([body, (await add(body)).status]).toEqual([body, 400]);
    }
    expect((await add(new Uint8Array([0xff, 0xfe]))).status).toBe(400);
    expect((await add("x".repeat(70_000))).status).toBe(413);
    await verified(await log.submit(8, 9), log.checkpoint(9));
  });

  it("never cosigns two heads of one size, nor two that go apart, when they come at once", async () => {
    const log = await OtherLog.watched("other.example/race");
    await log.submit(0, 4);
    const answers = await Promise.all(
      [5, 6, 7, 8, 9].flatMap((size) => [log.submit(4, size), log.submit(4, size)]),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    const forks = ["a", "b", "c", "d"].map((branch) => `other.example/race-${branch}`);
    for (const origin of forks) {
      const raced = await OtherLog.watched(origin);
      const both = await Promise.all(["x", "y", "z"].map((branch) => raced.submit(0, 3, branch)));
      expect(both.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    }
  });

  it("keeps what it cosigned when its memory is gone, and when the log was taken out and put back", async () => {
    const origin = "other.example/kept";
    const log = await OtherLog.watched(origin);
    await log.submit(0, 6);
    const before = await witnessKey();
    const stub = env.WITNESS.getByName(WITNESS);
    await runInDurableObject(stub, () => {});
    await evictDurableObject(stub);
    expect(await witnessKey()).toEqual(before);
    expect((await log.submit(0, 3, "fork")).text).toBe("6\n");
    await configure({ origin, vkeys: [] });
    expect((await log.submit(6, 7)).status).toBe(404);
    await configure({ origin, vkeys: [vkeyOf(origin)] });
    expect((await log.submit(0, 3, "fork")).text).toBe("6\n");
    await verified(await log.submit(6, 7), log.checkpoint(7));
  });

  it("has the head in storage before it answers", async () => {
    const log = await OtherLog.watched("other.example/durable");
    expect((await log.submit(0, 2)).status).toBe(200);
    const rows = await runInDurableObject(env.WITNESS.getByName(WITNESS), (_witness, state) =>
      state.storage.sql.exec("SELECT size, root FROM cosigned WHERE origin = ?", log.origin).toArray(),
    );
    expect(rows).toEqual([{ size: 2, root: toHex(edge("main", 0, 2).root()) }]);
  });

  it("gives no cosignature where the head could not be stored, and moves once it can", async () => {
    const log = await OtherLog.watched("other.example/full");
    const stub = env.WITNESS.getByName(WITNESS);
    const sql = (query: string) =>
      runInDurableObject(stub, (_witness, state) => void state.storage.sql.exec(query));
    await sql("ALTER TABLE cosigned RENAME TO away");
    const refused = await log.submit(0, 2);
    expect([refused.status, problemOf(refused)]).toEqual([503, "unavailable"]);
    await sql("ALTER TABLE away RENAME TO cosigned");
    await verified(await log.submit(0, 2), log.checkpoint(2));
  });

  it("is configured by the operator alone, with log keys alone, and says what it has", async () => {
    const origin = "other.example/listed";
    const log = await OtherLog.watched(origin);
    await log.submit(0, 3);
    const list = await call(env.RUNSEAL_OPERATOR_TOKEN, "GET", "/v1/witnessed-logs");
    const logs = list.body.logs as unknown as { origin: string }[];
    expect(logs.find((one) => one.origin === origin)).toMatchObject({
      vkeys: [vkeyOf(origin)],
      latest: { size: 3, root: toHex(edge("main", 0, 3).root()), checkpoint: log.checkpoint(3) },
    });
    expect((await call(null, "GET", "/v1/witnessed-logs")).status).toBe(401);
    expect((await call(null, "PUT", "/v1/witnessed-logs", { origin, vkeys: [] })).status).toBe(401);
    const cosigner = (await call(null, "GET", "/witness/key")).text.trim();
    for (const [body, pointer] of [
      [{ origin, vkeys: ["x"] }, "/vkeys/0"],
      [{ origin, vkeys: [vkeyOf(origin), cosigner] }, "/vkeys/1"],
      [{ origin: "two\nlines", vkeys: [] }, "/origin"],
      [{ origin }, "/vkeys"],
    ] as const) {
      const answer = await configure(body);
      expect([answer.status, answer.body.pointer]).toEqual([400, pointer]);
    }
  });
});
