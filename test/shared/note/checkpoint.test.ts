import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { toBase64, utf8 } from "../../../shared/bytes.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import { EMPTY_ROOT, leafHash } from "../../../shared/merkle/hash.ts";
import {
  formatCheckpoint,
  openCheckpoint,
  parseCheckpoint,
  parseCheckpointText,
  signCheckpoint,
} from "../../../shared/note/checkpoint.ts";
import { cosign } from "../../../shared/note/cosignature.ts";
import { addSignatures, openNote, parseNote, signNote } from "../../../shared/note/signed-note.ts";
import { parseVkey, SIGNATURE_TYPES, witnessKey } from "../../../shared/note/vkey.ts";
import { describeWithShared, readShared, readSharedJson } from "../../support/shared-files.ts";

const crypto = nativeCrypto;
const withCode = (code: string) => expect.objectContaining({ code });
const malformed = withCode("malformed-checkpoint");
const ROOT = toBase64(EMPTY_ROOT);

describeWithShared(
  "transparency-dev/formats' vectors of checkpoints",
  "vectors/extracted/formats-note.json",
  () => {
    interface Vectors {
      checkpoint_parse: { desc: string; text: string; wantErr: boolean }[];
      cosignature_vkeys: { name: string; vkey: string }[];
      cosignature_timestamps: { sig_base64: string; unix: number }[];
      cosignature_bad_sigs: string[];
      sumdb: { vkey: string; origin: string; note: string };
    }
    const vectors = () => readSharedJson<Vectors>("vectors/extracted/formats-note.json");

    it("are read and refused as published, but for roots that are no SHA-256 and for empty extension lines", () => {
      expect(vectors().checkpoint_parse).toHaveLength(12);
      for (const { desc, text, wantErr } of vectors().checkpoint_parse) {
        // The library that they are from takes any base64 for a root.
        expect(() => parseCheckpointText(text), desc).toThrow(malformed);
        const lines = text.split("\n");
        const withRoot = lines
          .with(Math.min(2, lines.length - 1), wantErr ? (lines[2] ?? "") : ROOT)
          .join("\n");
        const refused = wantErr || desc === "valid with trailing newlines";
        if (refused) expect(() => parseCheckpointText(withRoot), desc).toThrow(malformed);
        else expect(parseCheckpointText(withRoot).root, desc).toEqual(EMPTY_ROOT);
      }
      // Each refusal is for its own reason: with a right root in place, all but two are refused still.
      const still = vectors().checkpoint_parse.filter(({ text, wantErr }) => {
        const lines = text.split("\n");
        if (!wantErr || lines[2] === undefined || lines[2] === "") return false;
        try {
          parseCheckpointText(lines.with(2, ROOT).join("\n"));
          return false;
        } catch {
          return true;
        }
      });
      expect(still.map(({ desc }) => desc)).toEqual([
        "invalid - empty header",
        "invalid - missing newline on roothash",
        "invalid size - not a number",
        "invalid size - negative",
        "invalid size - too large",
      ]);
    });

    it("open under the key of the Go checksum database", () => {
      const { vkey, origin, note } = vectors().sumdb;
      const key = parseVkey(crypto, vkey);
      const { checkpoint, keys } = openCheckpoint(crypto, note, key.name, [key.publicKey]);
      expect(checkpoint).toMatchObject({ origin, size: 6476701, extensions: [] });
      expect(keys).toEqual([key.publicKey]);
    });

    it("have cosignatures whose time and length are read as published", () => {
      const { cosignature_timestamps, cosignature_bad_sigs } = vectors();
      for (const { sig_base64, unix } of cosignature_timestamps) {
        const { signature } = parseNote(`t\n\n— w ${sig_base64}\n`).signatures[0]!;
        expect(signature).toHaveLength(72);
        expect(new DataView(signature.buffer).getBigUint64(0)).toBe(BigInt(unix));
      }
      const [plain, noBase64] = cosignature_bad_sigs;
      expect(parseNote(`t\n\n— w ${plain}\n`).signatures[0]!.signature).toHaveLength(64);
      expect(() => parseNote(`t\n\n— w ${noBase64}\n`)).toThrow(withCode("malformed-note"));
    });

    it("have witness keys that are made of log keys", () => {
      const vkey = (name: string) => vectors().cosignature_vkeys.find((one) => one.name.includes(name))!.vkey;
      const log = parseVkey(crypto, vkey("convert from algEd25519"));
      expect(log.type).toBe(SIGNATURE_TYPES.ed25519);
      const witness = witnessKey(crypto, log.name, log.publicKey);
      expect(witness.type).toBe(SIGNATURE_TYPES.cosignature);
      expect(witness.keyId).not.toBe(log.keyId);
      expect(parseVkey(crypto, vkey("native algEd25519CosignatureV1")).type).toBe(
        SIGNATURE_TYPES.cosignature,
      );
    });
  },
);

describeWithShared("golang.org/x/mod's vectors of trees", "vectors/extracted/xmod-tlog.json", () => {
  it("are written and refused as published", () => {
    interface Vectors {
      format_tree: { n: number; leaf: string; text: string };
      bad_trees: string[];
    }
    const { format_tree, bad_trees } = readSharedJson<Vectors>("vectors/extracted/xmod-tlog.json");
    const head = {
      origin: "go.sum database tree",
      size: format_tree.n,
      root: leafHash(crypto, utf8(format_tree.leaf)),
    };
    expect(formatCheckpoint(head)).toBe(format_tree.text);
    expect(parseCheckpointText(format_tree.text)).toEqual({ ...head, extensions: [] });
    expect(bad_trees).toHaveLength(2);
    for (const text of bad_trees) expect(() => parseCheckpointText(text)).toThrow(malformed);
  });
});

describeWithShared(
  "the checkpoints of the C2SP specifications",
  "vectors/extracted/c2sp-spec-examples.json",
  () => {
    const examples = () =>
      readSharedJson<Record<string, string>>("vectors/extracted/c2sp-spec-examples.json");

    it("are read, cosigned or not", () => {
      for (const [name, count] of [
        ["checkpoint", 1],
        ["cosigned_checkpoint", 2],
      ] as const) {
        // prettier-ignore
        const { checkpoint, signatures } = parseCheckpoint(examples()[name]!);
        expect(checkpoint).toMatchObject({ origin: "example.com/behind-the-sofa", size: 20852163 });
        expect(signatures).toHaveLength(count);
      }
      const witness = parseCheckpoint(examples().cosigned_checkpoint!).signatures[1]!;
      expect(new DataView(witness.signature.buffer).getBigUint64(0)).toBe(1679315147n);
    });
  },
);

describeWithShared("the checkpoints of the Tessera log", "vectors/tessera/log", () => {
  it("open under the log's vkey at every size", () => {
    const { log_vkey } = readSharedJson<{ log_vkey: string }>("vectors/extracted/tessera-paths.json");
    const key = parseVkey(crypto, log_vkey);
    for (let size = 0; size <= 15; size++) {
      const note = readShared(`vectors/tessera/log/checkpoint.${size}`);
      const { checkpoint, keys } = openCheckpoint(crypto, note, key.name, [key.publicKey]);
      expect(checkpoint).toMatchObject({ origin: key.name, size });
      expect(keys).toHaveLength(1);
    }
  });
});

describeWithShared("the checkpoints of Sunlight's witnesses", "vectors/sunlight-mirror", () => {
  const base = "vectors/sunlight-mirror";
  const id = "000de184301123b9278c086a7d9f68c9577e83872224c197058fd90784ea9706";
  const CASES = [
    ["witness/witness.v0.json", `witness/${id}/checkpoint`, 1],
    ["witness/mirror/mirror.v0.json", `witness/mirror/${id}/checkpoint`, 0],
    [
      "witness2/witness.v0.json",
      "witness2/88ad7a28caeb0b2aa890fdf0304c2fcaf59fca2ee140134ff8c1300bac493482/checkpoint",
      0,
    ],
  ] as const;

  it.each(CASES)(
    "open under the keys of %s, RFC 6962 signatures being unverified",
    (config, note, unverified) => {
      const { verifier_keys } = readSharedJson<{ verifier_keys: string[] }>(`${base}/${config}`);
      const keys = verifier_keys.map((vkey) => parseVkey(crypto, vkey));
      for (const port of [nativeCrypto, pureCrypto]) {
        const opened = openNote(port, readShared(`${base}/${note}`), keys);
        expect(opened.verified.map(({ key }) => key)).toEqual(keys);
        expect(opened.verified[0]!.timestamp).toBe(1767139200n);
        expect(opened.unverified).toHaveLength(unverified);
        expect(parseCheckpointText(opened.text).size).toBe(300);
      }
    },
  );
});

const signer = crypto.signer(new Uint8Array(32).fill(1));
const next = crypto.signer(new Uint8Array(32).fill(2));
const witness = crypto.signer(new Uint8Array(32).fill(3));
const ORIGIN = "log.example/t/0011223344556677/p/00112233445566778899aabbccddeeff.1";
const head = { origin: ORIGIN, size: 17, root: leafHash(crypto, utf8("root")) };

const line = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 30 })
  .map((text) => text.replaceAll(/\p{Cc}/gu, ".")); // prettier-ignore

describe("checkpoint texts", () => {
  it("read back as what they were written from", () => {
    fc.assert(
      fc.property(
        line,
        fc.maxSafeNat(),
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        fc.array(line, { maxLength: 3 }),
        (origin, size, root, extensions) => {
          const checkpoint = { origin, size, root, extensions };
          expect(parseCheckpointText(formatCheckpoint(checkpoint))).toEqual(checkpoint);
        },
      ),
    );
    expect(formatCheckpoint({ origin: "o", size: 0, root: EMPTY_ROOT })).toBe(`o\n0\n${ROOT}\n`);
  });

  const BAD: [string, string][] = [
    ["no origin", `\n1\n${ROOT}\n`],
    ["no root", "o\n1\n"],
    ["no newline at the end", `o\n1\n${ROOT}`],
    ["no newline after an extension line", `o\n1\n${ROOT}\nab`],
    ["a size with a leading zero", `o\n01\n${ROOT}\n`],
    ["a size with a sign", `o\n+1\n${ROOT}\n`],
    ["an empty size", `o\n\n${ROOT}\n`],
    ["a size over 2^53 - 1", `o\n9007199254740992\n${ROOT}\n`],
    ["a size of 17 digits", `o\n10000000000000000\n${ROOT}\n`],
    ["a size in other digits", `o\n٣\n${ROOT}\n`],
    ["a root of 31 bytes", `o\n1\n${toBase64(new Uint8Array(31))}\n`],
    ["a root of 33 bytes", `o\n1\n${toBase64(new Uint8Array(33))}\n`],
    ["a root without padding", `o\n1\n${ROOT.slice(0, -1)}\n`],
    ["a root with bits beyond its end", `o\n1\n${ROOT.replace("U=", "V=")}\n`],
    ["a space after the root", `o\n1\n${ROOT} \n`],
    ["an empty extension line", `o\n1\n${ROOT}\n\n`],
    ["a control character in the origin", `o\t\n1\n${ROOT}\n`],
    ["a control character in an extension line", `o\n1\n${ROOT}\na\rb\n`],
  ];

  it.each(BAD)("are refused with %s", (_name, text) => {
    expect(() => parseCheckpointText(text)).toThrow(malformed);
  });

  it("are not written where they could not be read", () => {
    const bad = [
      { ...head, origin: "" },
      { ...head, origin: "a\nb" },
      { ...head, origin: "\ud800" },
      { ...head, size: -1 },
      { ...head, size: 1.5 },
      { ...head, size: 2 ** 53 },
      { ...head, root: head.root.subarray(1) },
      { ...head, extensions: [""] },
      { ...head, extensions: ["a\nb"] },
    ];
    for (const checkpoint of bad) expect(() => formatCheckpoint(checkpoint)).toThrow(malformed);
  });
});

describe("signed checkpoints", () => {
  it("open under the key that signed, with the head that was signed", () => {
    const note = signCheckpoint(crypto, ORIGIN, [signer], head);
    expect(signCheckpoint(pureCrypto, ORIGIN, [pureCrypto.signer(new Uint8Array(32).fill(1))], head)).toBe(
      note,
    );
    for (const port of [nativeCrypto, pureCrypto]) {
      const opened = openCheckpoint(port, note, ORIGIN, [next.publicKey, signer.publicKey]);
      expect(opened.checkpoint).toEqual({ ...head, extensions: [] });
      expect(opened.keys).toEqual([signer.publicKey]);
    }
    expect(parseCheckpoint(utf8(note)).checkpoint).toEqual({ ...head, extensions: [] });
  });

  it("carry two signatures at a rotation, and open under either key and under both", () => {
    const note = signCheckpoint(crypto, ORIGIN, [signer, next], head);
    const open = (keys: Uint8Array[]) => openCheckpoint(crypto, note, ORIGIN, keys).keys;
    expect(open([signer.publicKey])).toEqual([signer.publicKey]);
    expect(open([next.publicKey])).toEqual([next.publicKey]);
    expect(open([next.publicKey, signer.publicKey])).toEqual([signer.publicKey, next.publicKey]);
  });

  it("do not open under other keys, other names or without keys", () => {
    const note = signCheckpoint(crypto, ORIGIN, [signer], head);
    const unverified = withCode("unverified-note");
    expect(() => openCheckpoint(crypto, note, ORIGIN, [next.publicKey])).toThrow(unverified);
    expect(() => openCheckpoint(crypto, note, `${ORIGIN}x`, [signer.publicKey])).toThrow(unverified);
    expect(() => openCheckpoint(crypto, note, ORIGIN, [])).toThrow(unverified);
  });

  it("do not open with any bit flipped", () => {
    const note = utf8(signCheckpoint(crypto, ORIGIN, [signer], head));
    fc.assert(
      fc.property(fc.nat(8 * note.length - 1), (bit) => {
        const changed = note.slice();
        changed[bit >> 3]! ^= 1 << (bit & 7);
        expect(() => openCheckpoint(crypto, changed, ORIGIN, [signer.publicKey])).toThrow();
      }),
      { numRuns: 300 },
    );
  });

  it("are refused where the note is good and its text no checkpoint", () => {
    const note = signNote(crypto, `${ORIGIN}\nx\n${ROOT}\n`, [{ name: ORIGIN, signer }]);
    expect(() => openCheckpoint(crypto, note, ORIGIN, [signer.publicKey])).toThrow(malformed);
    expect(() => parseCheckpoint(note)).toThrow(malformed);
  });
});

describe("cosignatures", () => {
  const key = witnessKey(crypto, "witness.example", witness.publicKey);
  const note = signCheckpoint(crypto, ORIGIN, [signer], head);
  const { text } = parseNote(note);

  it("verify on the checkpoint that they are for, with their time", () => {
    for (const time of [0n, 1n, 1679315147n, (1n << 63n) - 1n]) {
      const cosigned = addSignatures(note, [cosign(crypto, key.name, witness, text, time)]);
      for (const port of [nativeCrypto, pureCrypto]) {
        const opened = openNote(port, cosigned, [key]);
        expect(opened.verified.map(({ name, timestamp }) => [name, timestamp])).toEqual([
          ["witness.example", time],
        ]);
        expect(opened.unverified.map(({ name }) => name)).toEqual([ORIGIN]);
      }
    }
  });

  it("sign the message that the specification shows", () => {
    const { signature } = cosign(crypto, key.name, witness, text, 1679315147n);
    const message = utf8(`cosignature/v1\ntime 1679315147\n${text}`);
    expect(signature.subarray(8)).toEqual(witness.sign(message));
  });

  it("are refused with any bit of theirs or of the text flipped", () => {
    const made = cosign(crypto, key.name, witness, text, 1679315147n);
    fc.assert(
      fc.property(fc.nat(8 * made.signature.length - 1), (bit) => {
        const signature = made.signature.slice();
        signature[bit >> 3]! ^= 1 << (bit & 7);
        const changed = addSignatures(note, [{ ...made, signature }]);
        expect(() => openNote(crypto, changed, [key])).toThrow(withCode("invalid-signature"));
      }),
      { numRuns: 200 },
    );
    const other = signCheckpoint(crypto, ORIGIN, [signer], { ...head, size: 18 });
    expect(() => openNote(crypto, addSignatures(other, [made]), [key])).toThrow(
      withCode("invalid-signature"),
    );
  });

  it("are refused with another length or a time over 2^63 - 1, and not taken for a log's signature", () => {
    const made = cosign(crypto, key.name, witness, text, 1n);
    for (const signature of [
      made.signature.subarray(0, 71),
      new Uint8Array([...made.signature, 0]),
      new Uint8Array(4),
    ]) {
      expect(() => openNote(crypto, addSignatures(note, [{ ...made, signature }]), [key])).toThrow(
        withCode("invalid-signature"),
      );
    }
    const late = new Uint8Array(8).fill(255);
    const message = utf8(`cosignature/v1\ntime ${2n ** 64n - 1n}\n${text}`);
    const signature = new Uint8Array([...late, ...witness.sign(message)]);
    expect(() => openNote(crypto, addSignatures(note, [{ ...made, signature }]), [key])).toThrow(
      withCode("invalid-signature"),
    );
    // The same key as a log's key has another id: the line is not its.
    const asLog = openCheckpoint(crypto, addSignatures(note, [made]), ORIGIN, [
      signer.publicKey,
      witness.publicKey,
    ]);
    expect(asLog.keys).toEqual([signer.publicKey]);
  });

  it("are not made for what is no checkpoint, for times that can't be, or under names that can't be", () => {
    expect(() => cosign(crypto, key.name, witness, "text\n", 1n)).toThrow(malformed);
    for (const time of [-1n, 1n << 63n]) {
      expect(() => cosign(crypto, key.name, witness, text, time)).toThrow(withCode("bad-timestamp"));
    }
    expect(() => cosign(crypto, "a b", witness, text, 1n)).toThrow(withCode("bad-key"));
  });
});
