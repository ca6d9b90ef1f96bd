import { describe, expect, it } from "vitest";
import type { Submission, Witness } from "../../durable-objects/head-log/witnesses.ts";
import { askWitness, parseWitnesses } from "../../durable-objects/head-log/witnesses.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { utf8 } from "../../shared/bytes.ts";
import { RightEdge } from "../../shared/merkle/edge.ts";
import { consistencyNodes, foldProof } from "../../shared/merkle/proof.ts";
import { parseCheckpoint, signCheckpoint } from "../../shared/note/checkpoint.ts";
import { cosign } from "../../shared/note/cosignature.ts";
import { addSignatures, openNote } from "../../shared/note/signed-note.ts";
import { formatVkey, logKey, witnessKey } from "../../shared/note/vkey.ts";
import {
  formatCosignatures,
  formatSizeConflict,
  judgeAddCheckpoint,
  parseAddCheckpoint,
  SIZE_CONTENT_TYPE,
} from "../../shared/note/witness.ts";

const ORIGIN = "log.example";
const logSigner = nativeCrypto.signer(new Uint8Array(32).fill(1));
const witnessSigner = nativeCrypto.signer(new Uint8Array(32).fill(2));
const key = witnessKey(nativeCrypto, "witness.example", witnessSigner.publicKey);
const witness: Witness = { name: "w", url: "https://witness.example/path", key };

const leaf = (i: number) => nativeCrypto.sha256(utf8(`leaf ${i}`));
function edge(begin: number, end: number): RightEdge {
  const made = new RightEdge(nativeCrypto);
  for (let i = begin; i < end; i++) made.append(leaf(i));
  return made;
}

type Answering = (body: string, url: string) => Response | Promise<Response>;

function submissionOf(size: number, answering: Answering): Submission {
  const head = { origin: ORIGIN, size, root: edge(0, size).root() };
  return {
    crypto: nativeCrypto,
    size,
    checkpoint: signCheckpoint(nativeCrypto, ORIGIN, [logSigner], head),
    proof: (from) => {
      const plan = consistencyNodes(from, size);
      const nodes = plan.nodes.map(({ level, index }) =>
        edge(index * 2 ** level, (index + 1) * 2 ** level).root(),
      );
      return foldProof(nativeCrypto, plan, nodes);
    },
    fetch: async (url, init) => answering(String(init.body), url),
  };
}

/** A witness that keeps to the specification. */
class GoodWitness {
  latest: { size: number; root: Uint8Array } | null = null;
  readonly asked: { oldSize: number; url: string }[] = [];

  readonly answer: Answering = (body, url) => {
    const request = parseAddCheckpoint(body);
    this.asked.push({ oldSize: request.oldSize, url });
    const keys = [logKey(nativeCrypto, ORIGIN, logSigner.publicKey)];
    const judged = judgeAddCheckpoint(nativeCrypto, request, (origin) => {
      return origin === ORIGIN ? { keys, latest: this.latest } : undefined;
    });
    if (judged.status === 409) {
      const headers = { "content-type": SIZE_CONTENT_TYPE };
      return new Response(formatSizeConflict(judged.size), { status: 409, headers });
    }
    if (judged.status !== 200) return new Response(null, { status: judged.status });
    this.latest = judged.checkpoint;
    return new Response(formatCosignatures([cosign(nativeCrypto, key.name, witnessSigner, judged.text, 1n)]));
  };
}

describe("a witness", () => {
  it("cosigns each head that goes on from the last one, and the cosignature verifies on the head", async () => {
    const good = new GoodWitness();
    let known = 0;
    for (const size of [1, 2, 7, 7, 300]) {
      const submission = submissionOf(size, good.answer);
      const answer = await askWitness(witness, submission, known);
      expect(answer).toMatchObject({ outcome: "cosigned", size, pauseMs: 0 });
      const note = submission.checkpoint + answer.cosignature;
      expect(openNote(nativeCrypto, note, [key]).verified).toHaveLength(1);
      known = answer.size;
    }
    expect(good.asked.map(({ oldSize }) => oldSize)).toEqual([0, 1, 2, 7, 7]);
    expect(good.asked[0]?.url).toBe("https://witness.example/path/add-checkpoint");
  });

  it("that has another size than thought is asked again from there", async () => {
    const good = new GoodWitness();
    await askWitness(witness, submissionOf(5, good.answer), 0);
    for (const known of [0, 3, 9]) {
      const answer = await askWitness(witness, submissionOf(8, good.answer), known);
      expect([known, answer.outcome, answer.size]).toEqual([known, "cosigned", 8]);
    }
    expect(good.asked.map(({ oldSize }) => oldSize)).toEqual([0, 0, 5, 3, 8, 8]);
  });

  it("that has seen more, or another tree, is not talked out of it", async () => {
    const good = new GoodWitness();
    await askWitness(witness, submissionOf(9, good.answer), 0);
    expect(await askWitness(witness, submissionOf(8, good.answer), 9)).toMatchObject({
      outcome: "ahead",
      size: 9,
    });
    good.latest = { size: 8, root: leaf(0) };
    expect(await askWitness(witness, submissionOf(8, good.answer), 8)).toMatchObject({
      outcome: "forked",
      size: 8,
    });
    expect(await askWitness(witness, submissionOf(9, good.answer), 8)).toMatchObject({
      outcome: "inconsistent",
    });
  });

  it.each([
    [400, "request-refused"],
    [403, "key-refused"],
    [404, "unknown-log"],
    [422, "inconsistent"],
    [409, "unexpected"],
    [301, "unexpected"],
    [429, "busy"],
    [500, "busy"],
    [503, "busy"],
  ])("that answers %i is understood: %s", async (status, outcome) => {
    const answer = await askWitness(
      witness,
      submissionOf(8, () => new Response("x", { status })),
      3,
    );
    expect(answer).toEqual({ outcome, size: 3, cosignature: null, pauseMs: outcome === "busy" ? 60_000 : 0 });
  });

  it("that is busy is left alone as long as it asks for, up to an hour", async () => {
    for (const [asked, pause] of [
      ["7", 7000],
      ["999999", 3_600_000],
      ["soon", 60_000],
      ["-1", 60_000],
    ] as const) {
      const busy = () => new Response(null, { status: 429, headers: { "retry-after": asked } });
      expect((await askWitness(witness, submissionOf(8, busy), 0)).pauseMs).toBe(pause);
    }
  });

  it("that can't be reached, or always names another size, is given up", async () => {
    const away = () => Promise.reject(new Error("connect"));
    expect(await askWitness(witness, submissionOf(8, away), 3)).toMatchObject({
      outcome: "unreachable",
      size: 3,
    });
    let there = 1;
    const headers = { "content-type": SIZE_CONTENT_TYPE };
    const restless = () => new Response(formatSizeConflict(there++), { status: 409, headers });
    expect((await askWitness(witness, submissionOf(8, restless), 0)).outcome).toBe("unexpected");
    expect(there).toBe(3);
  });

  it("whose cosignature is another's, of another head, or no signature, gives none", async () => {
    const submission = submissionOf(8, () => new Response(null));
    const { text } = parseCheckpoint(submission.checkpoint);
    const { text: other } = parseCheckpoint(submissionOf(7, () => new Response(null)).checkpoint);
    const stranger = nativeCrypto.signer(new Uint8Array(32).fill(3));
    const wrong = [
      "",
      "no signature\n",
      formatCosignatures([cosign(nativeCrypto, key.name, stranger, text, 1n)]),
      formatCosignatures([cosign(nativeCrypto, key.name, witnessSigner, other, 1n)]),
      formatCosignatures([{ ...cosign(nativeCrypto, key.name, stranger, text, 1n), keyId: key.keyId }]),
    ];
    for (const body of wrong) {
      const answer = await askWitness(
        witness,
        submissionOf(8, () => new Response(body)),
        0,
      );
      expect(answer).toMatchObject({ outcome: "bad-cosignature", cosignature: null, size: 0 });
    }
    const both = [stranger, witnessSigner].map((signer) => cosign(nativeCrypto, key.name, signer, text, 1n));
    const answer = await askWitness(
      witness,
      submissionOf(8, () => new Response(formatCosignatures(both))),
      0,
    );
    expect(answer.outcome).toBe("cosigned");
    expect(addSignatures(submission.checkpoint, both.slice(1))).toBe(
      submission.checkpoint + answer.cosignature,
    );
  });
});

describe("the configuration of witnesses", () => {
  it("is a list of name, url and cosignature key", () => {
    const vkey = formatVkey(key);
    const text = JSON.stringify([{ name: "w", url: "https://witness.example/path/", vkey }]);
    expect(parseWitnesses(nativeCrypto, text)).toEqual([witness]);
    expect(parseWitnesses(nativeCrypto, undefined)).toEqual([]);
    const logVkey = formatVkey(logKey(nativeCrypto, "x", logSigner.publicKey));
    for (const bad of ["{", "{}", "[null]", '[{"name":"w"}]']) {
      expect(() => parseWitnesses(nativeCrypto, bad)).toThrow(
        expect.objectContaining({ code: "bad-witnesses" }),
      );
    }
    for (const change of [{ url: "ftp://x" }, { url: "nowhere" }, { vkey: "x" }, { vkey: logVkey }]) {
      const one = JSON.stringify([{ name: "w", url: "https://w", vkey, ...change }]);
      expect(() => parseWitnesses(nativeCrypto, one)).toThrow(
        expect.objectContaining({ code: "bad-witnesses" }),
      );
    }
  });
});
