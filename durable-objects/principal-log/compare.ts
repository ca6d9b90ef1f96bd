/**
 * Whether an entry that is sent again is the one that was stored. Equality is on all
 * that the sender said: the envelope and every field, commitments being recomputed with the stored salts. What the
 * service added (credential, times, position) is not compared.
 *
 * @module
 */
import { equalBytes, fromHex } from "../../shared/bytes.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import type { SectionName } from "../../shared/entry/commitment.ts";
import { commitField, SECTIONS } from "../../shared/entry/commitment.ts";
import type { FieldTexts } from "../../shared/entry/content.ts";
import { hasErased, splitSections } from "../../shared/entry/content.ts";
import { decodeLeaf } from "../../shared/entry/decode-leaf.ts";
import type { Leaf } from "../../shared/entry/leaf.ts";
import { LeafSealer, sectionCommitments } from "../../shared/entry/leaf.ts";
import { parseRow } from "../../shared/entry/row.ts";
import type { FramedEntry } from "./frame.ts";

/** Decodes a body alone, by sealing it at a position that says nothing. */
function decodeBody(body: Uint8Array): Leaf {
  const zero = new Uint8Array(32);
  return decodeLeaf(new LeafSealer({ logId: zero, epoch: 0, key: zero }).seal(1, zero, 0n, body));
}

const NO_TEXTS: FieldTexts = new Map();

function contentOf(row: string): { values: FieldTexts; salts: FieldTexts } | null {
  const { values, salts } = parseRow(row);
  return values === null || salts === null || hasErased(values)
    ? null
    : { values: splitSections(values), salts: splitSections(salts) };
}

/**
 * Names what differs between a stored entry and one sent again under its id: JSON pointers to members, sorted as the
 * entry is written, never a value. Empty: they are the same. `"erased"`: some of the stored content is gone.
 *
 * @param form whether the first bytes of the stored entry are a leaf or a body alone
 */
export function compareSubmissions(
  crypto: CryptoPort,
  stored: FramedEntry,
  submitted: FramedEntry,
  form: "leaf" | "body" = "leaf",
): readonly string[] | "erased" {
  const old = form === "leaf" ? decodeLeaf(stored.bytes) : decodeBody(stored.bytes);
  const now = decodeBody(submitted.bytes);
  const oldContent = contentOf(stored.row);
  const nowContent = contentOf(submitted.row);
  if (oldContent === null) return "erased";
  const differs: string[] = [];
  for (const name of ["kind", "session", "run", "step", "call"] as const) {
    if (old[name] !== now[name]) differs.push(`/${name}`);
  }
  if (old.occurredAt !== now.occurredAt) differs.push("/occurred_at");
  if (old.submitter.reporter !== now.submitter.reporter) differs.push("/reporter");
  if (!sameActor(old, now)) differs.push("/actor");
  if (!sameClient(old, now)) differs.push("/client");
  if (old.authorization?.tag !== now.authorization?.tag) differs.push("/authorization/type");
  if (old.outcome?.tag !== now.outcome?.tag) differs.push("/outcome/status");
  for (const section of SECTIONS) {
    const oldFields = sectionCommitments(old, section);
    const nowFields = sectionCommitments(now, section);
    for (const name of new Set([...oldFields.keys(), ...nowFields.keys()])) {
      const oldCommitment = oldFields.get(name);
      const nowCommitment = nowFields.get(name);
      const same =
        oldCommitment !== undefined &&
        nowCommitment !== undefined &&
        (equalBytes(oldCommitment, nowCommitment) ||
          sameValue(crypto, section, name, oldCommitment, oldContent.salts, nowContent?.values ?? NO_TEXTS));
      if (!same) differs.push(`/${section}/${name}`);
    }
  }
  return differs;
}

/** Recomputes the stored commitment from the value sent now and the salt stored then. */
function sameValue(
  crypto: CryptoPort,
  section: SectionName,
  name: string,
  commitment: Uint8Array,
  salts: FieldTexts,
  values: FieldTexts,
): boolean {
  const salt = salts.get(section)?.get(name);
  const text = values.get(section)?.get(name);
  if (salt === undefined || text === undefined) return false;
  return equalBytes(
    commitField(crypto, { section, name, salt: fromHex(salt.slice(1, -1)), text }),
    commitment,
  );
}

function sameActor(a: Leaf, b: Leaf): boolean {
  if (a.actor === null || b.actor === null) return a.actor === b.actor;
  if (a.actor.type !== b.actor.type || a.actor.id !== b.actor.id) return false;
  if (a.actor.codeHash === null || b.actor.codeHash === null) return a.actor.codeHash === b.actor.codeHash;
  return equalBytes(a.actor.codeHash, b.actor.codeHash);
}

function sameClient(a: Leaf, b: Leaf): boolean {
  if (a.client === null || b.client === null) return a.client === b.client;
  return equalBytes(a.client.key, b.client.key) && equalBytes(a.client.signature, b.client.signature);
}
