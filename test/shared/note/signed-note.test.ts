import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { fromBase64, toBase64, utf8 } from "../../../shared/bytes.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import {
  addSignatures,
  formatNote,
  MAX_NOTE_LENGTH,
  openNote,
  parseNote,
  signNote,
} from "../../../shared/note/signed-note.ts";
import type { NoteKey } from "../../../shared/note/vkey.ts";
import { formatVkey, logKey, parseVkey, SIGNATURE_TYPES } from "../../../shared/note/vkey.ts";
import { describeWithShared, readSharedJson } from "../../support/shared-files.ts";

const crypto = nativeCrypto;
const withCode = (code: string) => expect.objectContaining({ code });

/** Runs and gives the code of the refusal, or undefined. */
function refusal(run: () => unknown): string | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}

describeWithShared("golang.org/x/mod's vectors of signed notes", "vectors/extracted/xmod-note.json", () => {
  interface Case {
    name: string;
    note?: string;
    note_base64?: string;
    verifiers: string[];
    ok: boolean;
    error?: string;
    verified?: string[];
    unverified?: string[];
  }
  interface Vectors {
    vkey: string;
    skey: string;
    second_vkey: string;
    text: string;
    signed: string;
    bad_vkeys: string[];
    bad_sign_texts: string[];
    cases: Case[];
  }
  const vectors = () => readSharedJson<Vectors>("vectors/extracted/xmod-note.json");

  const CODES: [RegExp, string][] = [
    [/^malformed note$/, "malformed-note"],
    [/^ambiguous key/, "ambiguous-key"],
    [/^invalid signature/, "invalid-signature"],
    [/^note has no verifiable signatures$/, "unverified-note"],
  ];

  it.each([["pure", pureCrypto] as const, ["native", nativeCrypto] as const])(
    "opens and refuses all 14 notes as Go does (%s)",
    (_name, port) => {
      const { cases } = vectors();
      expect(cases).toHaveLength(14);
      for (const one of cases) {
        const note = one.note ?? fromBase64(one.note_base64 ?? "");
        const open = () =>
          openNote(
            port,
            note,
            one.verifiers.map((vkey) => parseVkey(port, vkey)),
          ); // prettier-ignore
        if (one.ok) {
          const opened = open();
          expect(
            opened.verified.map(({ name }) => name),
            one.name,
          ).toEqual(one.verified);
          expect(
            opened.unverified.map(({ name }) => name),
            one.name,
          ).toEqual(one.unverified);
          expect(opened.text).toBe(vectors().text);
        } else {
          const code = CODES.find(([error]) => error.test(one.error ?? ""))?.[1];
          expect(refusal(open), one.name).toBe(code);
        }
      }
    },
  );

  it("signs to the published note with the published key", () => {
    const { skey, text, signed, vkey } = vectors();
    // PRIVATE+KEY+<name>+<id>+<base64 of type and seed>
    const [, , name, , ...material] = skey.split("+");
    const signer = crypto.signer(fromBase64(material.join("+")).subarray(1));
    expect(signNote(crypto, text, [{ name: name!, signer }])).toBe(signed);
    expect(formatVkey(logKey(crypto, name!, signer.publicKey))).toBe(vkey);
  });

  it("refuses to sign the texts that Go refuses", () => {
    const signer = crypto.signer(new Uint8Array(32));
    for (const text of [...vectors().bad_sign_texts, "", "a\u0001b\n", "a\r\n", "\ud800\n"]) {
      expect(() => signNote(crypto, text, [{ name: "n", signer }])).toThrow(withCode("malformed-note"));
    }
  });

  it("reads the published vkeys, and refuses the bad ones, every part and every neighbour of a good one", () => {
    const { vkey, second_vkey, bad_vkeys } = vectors();
    for (const good of [vkey, second_vkey]) expect(formatVkey(parseVkey(crypto, good))).toBe(good);
    const bad = [...bad_vkeys];
    for (let i = 0; i < vkey.length; i++) {
      bad.push(vkey.slice(i + 1), vkey.slice(0, i));
      bad.push(vkey.slice(0, i) + String.fromCharCode(vkey.charCodeAt(i) + 1) + vkey.slice(i + 1));
    }
    for (const one of bad)
      expect(
        refusal(() => parseVkey(crypto, one)),
        one,
      ).toBe("bad-vkey");
  });
});

describeWithShared(
  "transparency-dev/formats' vectors of notes",
  "vectors/extracted/formats-note.json",
  () => {
    interface Vectors {
      ecdsa_vkeys: string[];
      ecdsa_static_ct_vkey: string;
      ecdsa_notes: { vkey: string; note: string; ok: boolean }[];
      cosignature_vkeys: { name: string; vkey: string; wantErr: boolean }[];
      sumdb: { vkey: string; note: string; note_multi_signed: string; extra_vkeys: string[] };
    }
    const vectors = () => readSharedJson<Vectors>("vectors/extracted/formats-note.json");

    it("reads ECDSA vkeys, whose key id has a rule of its own, and counts their signatures as unverified", () => {
      const { ecdsa_vkeys, ecdsa_notes, ecdsa_static_ct_vkey } = vectors();
      for (const vkey of [...ecdsa_vkeys, ecdsa_static_ct_vkey]) {
        expect(formatVkey(parseVkey(crypto, vkey))).toBe(vkey);
      }
      const signer = crypto.signer(new Uint8Array(32));
      for (const { vkey, note } of ecdsa_notes) {
        const key = parseVkey(crypto, vkey);
        expect(() => openNote(crypto, note, [key])).toThrow(withCode("unverified-note"));
        const { text, signatures } = parseNote(note);
        const ours = parseNote(signNote(crypto, text, [{ name: "ours", signer }])).signatures;
        const both = openNote(crypto, addSignatures(note, ours), [
          key,
          logKey(crypto, "ours", signer.publicKey),
        ]);
        expect(both.verified.map(({ name }) => name)).toEqual(["ours"]);
        expect(both.unverified).toEqual(signatures);
      }
    });

    it("reads and refuses vkeys as published, but for the one whose key id is wrong", () => {
      const { cosignature_vkeys } = vectors();
      expect(cosignature_vkeys).toHaveLength(8);
      for (const { name, vkey, wantErr } of cosignature_vkeys) {
        const refused = refusal(() => parseVkey(crypto, vkey));
        expect(refused, name).toBe(wantErr || name.includes("MLDSA") ? "bad-vkey" : undefined);
      }
      // That vkey's id is not its key's; with the right one it is read.
      const { vkey } = cosignature_vkeys.find(({ name }) => name.includes("MLDSA"))!;
      const key = parseVkey(crypto, vkey.replace("+5893dc2c+", "+31236897+"));
      expect(key).toMatchObject({ name: "test", type: SIGNATURE_TYPES.mlDsa44 });
      expect(key.publicKey).toHaveLength(1312);
    });

    it("opens the notes of the Go checksum database under one and under several keys", () => {
      const { vkey, note, note_multi_signed, extra_vkeys } = vectors().sumdb;
      const [log, ...others] = [vkey, ...extra_vkeys].map((one) => parseVkey(crypto, one));
      const one = openNote(crypto, note, [log!]);
      expect(one.verified.map(({ key }) => key)).toEqual([log]);
      const all = openNote(crypto, note_multi_signed, [log!, ...others]);
      expect(all.verified.map(({ key }) => key)).toEqual([log, ...others]);
      const some = openNote(crypto, note_multi_signed, others);
      expect(some.verified).toHaveLength(3);
      expect(some.unverified.map(({ name }) => name)).toEqual(["sum.golang.org"]);
    });
  },
);

describeWithShared("the note in the C2SP specification", "vectors/extracted/c2sp-spec-examples.json", () => {
  const { vkey, note } = readSharedJson<{ signed_note: { vkey: string; note: string } }>(
    "vectors/extracted/c2sp-spec-examples.json",
  ).signed_note;

  it("opens under its vkey", () => {
    const opened = openNote(crypto, note, [parseVkey(crypto, vkey)]);
    expect(opened.text).toBe("This is an example message.\n");
    expect(opened.verified).toHaveLength(1);
  });

  it("does not open with any of its characters changed", () => {
    for (let i = 0; i < note.length; i++) {
      const changed = note.slice(0, i) + (note[i] === "x" ? "y" : "x") + note.slice(i + 1);
      expect(
        refusal(() => openNote(crypto, changed, [parseVkey(crypto, vkey)])),
        String(i),
      ).toBeDefined();
    }
  });
});

const signers = ["a.example/log", "b.example", "c"].map((name, i) => ({
  name,
  signer: crypto.signer(new Uint8Array(32).fill(i + 1)),
}));
const keys: NoteKey[] = signers.map(({ name, signer }) => logKey(crypto, name, signer.publicKey));

/** Texts that can be signed, empty lines and lines that look like signatures among them. */
const noteText = fc
  .array(
    fc.oneof(fc.string({ unit: "grapheme", maxLength: 20 }), fc.constantFrom("", "— a.example/log AAAAAAA=")),
    {
      minLength: 1,
      maxLength: 6,
    },
  )
  .map((lines) =>
    lines
      .map((line) => line.replaceAll(/\p{Cc}/gu, ""))
      .join("\n")
      .concat("\n"),
  ); // prettier-ignore

describe("signed notes", () => {
  it("open to the text and the signers that they were signed with, under both ports, as text and as bytes", () => {
    fc.assert(
      fc.property(noteText, fc.subarray([0, 1, 2], { minLength: 1 }), (text, who) => {
        const some = who.map((i) => signers[i]!);
        const note = signNote(crypto, text, some);
        expect(signNote(pureCrypto, text, some)).toBe(note);
        expect(formatNote(parseNote(note))).toBe(note);
        for (const [port, form] of [
          [nativeCrypto, note],
          [pureCrypto, utf8(note)],
        ] as const) {
          // prettier-ignore
          const opened = openNote(port, form, keys);
          expect(opened.text).toBe(text);
          expect(opened.verified.map(({ key, timestamp }) => [key, timestamp])).toEqual(
            who.map((i) => [keys[i], null]),
          );
          expect(opened.unverified).toEqual([]);
        }
      }),
      { numRuns: 20 },
    );
  });

  it("never open with a bit of their bytes flipped to the same text and signers", () => {
    fc.assert(
      fc.property(noteText, fc.nat(), (text, at) => {
        const bytes = utf8(signNote(crypto, text, signers.slice(0, 1)));
        const bit = at % (8 * bytes.length);
        bytes[bit >> 3]! ^= 1 << (bit & 7);
        expect(refusal(() => openNote(crypto, bytes, keys))).toMatch(/^(malformed|invalid|unverified)-/);
      }),
      { numRuns: 300 },
    );
  });

  const signed = signNote(crypto, "text\n", signers.slice(0, 1));
  const line = signed.slice(signed.indexOf("—"));

  it("ignore signatures of keys that share only the name or only the key id with a known one", () => {
    const [key] = keys as [NoteKey];
    const id = toBase64(new Uint8Array([...fromBase64(line.split(" ")[2]!.trim()).subarray(0, 4), 1, 2, 3]));
    const sameId = `— another ${id}\n`;
    const sameName = `— ${key.name} ${toBase64(new Uint8Array(68))}\n`;
    const opened = openNote(crypto, `${signed}${sameId}${sameName}`, keys);
    expect(opened.verified).toHaveLength(1);
    expect(opened.unverified.map(({ name }) => name)).toEqual(["another", key.name]);
  });

  it("are refused whole where a known key's signature is wrong, even beside a right one", () => {
    const two = signNote(crypto, "text\n", signers.slice(0, 2));
    const lines = parseNote(two).signatures;
    const wrong = { ...lines[1]!, signature: lines[0]!.signature };
    const note = formatNote({ text: "text\n", signatures: [lines[0]!, wrong] });
    expect(() => openNote(crypto, note, keys)).toThrow(withCode("invalid-signature"));
    expect(openNote(crypto, note, keys.slice(0, 1)).verified).toHaveLength(1);
  });

  it("take the first of two signatures by one key and drop the second unread", () => {
    const [right] = parseNote(signed).signatures;
    const wrong = { ...right!, signature: new Uint8Array(64) };
    const first = formatNote({ text: "text\n", signatures: [right!, wrong] });
    expect(openNote(crypto, first, keys).verified).toHaveLength(1);
    const last = formatNote({ text: "text\n", signatures: [wrong, right!] });
    expect(() => openNote(crypto, last, keys)).toThrow(withCode("invalid-signature"));
  });

  it("complain of two equal keys only where a signature is theirs", () => {
    const twice = [...keys, keys[1]!];
    expect(openNote(crypto, signed, twice).verified).toHaveLength(1);
    const both = signNote(crypto, "text\n", signers.slice(0, 2));
    expect(() => openNote(crypto, both, twice)).toThrow(withCode("ambiguous-key"));
  });

  it("may have 100 signatures and 16 at least", () => {
    const many = (count: number) => `text\n\n${line.repeat(count)}`;
    expect(openNote(crypto, many(100), keys).verified).toHaveLength(1);
    expect(() => openNote(crypto, many(101), keys)).toThrow(withCode("malformed-note"));
    const [one] = parseNote(signed).signatures;
    const signatures = (count: number) => Array.from({ length: count }, () => one!);
    expect(() => formatNote({ text: "t\n", signatures: signatures(101) })).toThrow(
      withCode("malformed-note"),
    );
    expect(() => addSignatures(many(100), [one!])).toThrow(withCode("malformed-note"));
  });

  it("are refused beyond their size limit, before anything else is done", () => {
    const long = (length: number) => `${"x".repeat(length - line.length - 2)}\n\n${line}`;
    expect(parseNote(long(MAX_NOTE_LENGTH)).signatures).toHaveLength(1);
    expect(() => parseNote(long(MAX_NOTE_LENGTH + 1))).toThrow(withCode("malformed-note"));
    expect(() => parseNote(new Uint8Array(3 * MAX_NOTE_LENGTH + 1))).toThrow(withCode("malformed-note"));
  });

  const BAD: [string, string][] = [
    ["nothing", ""],
    ["no empty line", `text\n${line}`],
    ["no signature", "text\n\n"],
    ["no newline at the end", signed.slice(0, -1)],
    ["an empty line at the end", `${signed}\n`],
    ["a hyphen for the dash", signed.replace("—", "-")],
    ["no space after the dash", signed.replace("— ", "—")],
    ["two spaces after the name", signed.replace("/log ", "/log  ")],
    ["something after the signature", `${signed.slice(0, -1)} x\n`],
    ["no name", `text\n\n—  ${line.split(" ")[2]}`],
    ["a plus in the name", signed.replace("— a", "— a+")],
    ["a no-break space in the name", signed.replace("— a", "— a\u00a0")],
    ["a next-line in the name", signed.replace("— a", "— a\u0085")],
    ["a line separator in the name", signed.replace("— a", "— a\u2028")],
    ["a key id alone", "text\n\n— a AAAAAA==\n"],
    ["base64 without padding", signed.replace(/=\n$/, "\n")],
    ["base64 with bits beyond its end", "text\n\n— a AAAAAAB=\n"],
    ["base64 for URLs", "text\n\n— a AAAAAAA_\n"],
    ["no base64", "text\n\n— a \n"],
    ["a tab in the text", signed.replace("text", "te\txt")],
    ["a carriage return in the text", signed.replace("text", "text\r")],
    ["an unpaired surrogate", signed.replace("text", "\ud800")],
  ];

  it.each(BAD)("are refused with %s", (_name, note) => {
    expect(refusal(() => parseNote(note))).toBe("malformed-note");
    expect(refusal(() => openNote(crypto, note, keys))).toBe("malformed-note");
  });

  it("are not written where they could not be read", () => {
    const { signatures } = parseNote(signed);
    const bad = [
      { text: "text", signatures },
      { text: "", signatures },
      { text: "te\txt\n", signatures },
      { text: "text\n", signatures: [] },
      { text: "text\n", signatures: [{ ...signatures[0]!, name: "a b" }] },
      { text: "text\n", signatures: [{ ...signatures[0]!, signature: new Uint8Array(0) }] },
    ];
    for (const note of bad) expect(() => formatNote(note)).toThrow(withCode("malformed-note"));
    expect(() => signNote(crypto, "text\n", [])).toThrow(withCode("malformed-note"));
    expect(() => signNote(crypto, "text\n", [{ ...signers[0]!, name: "a+b" }])).toThrow(withCode("bad-key"));
  });
});
