/**
 * Signs an entry as its sender, before it is sent: every value gets its salt here, so that the commitments, and with
 * them the statement that the key signs, are known.
 *
 * @module
 */
import { toHex } from "../bytes.ts";
import type { CryptoPort, Signer } from "../crypto/port.ts";
import { JsonReader } from "../json/reader.ts";
import { signedMessage } from "../signing.ts";
import { SALT_BYTES } from "./commitment.ts";
import { refuse } from "./entry-error.ts";
import { readFieldForm } from "./field-form.ts";
import type { LeafBody } from "./leaf.ts";
import { encodeStatement } from "./leaf.ts";
import { prepareEntry } from "./prepare.ts";

export interface SignOptions {
  readonly crypto: CryptoPort;
  /** The log that the entry is for, 32 bytes: the signature counts in no other. */
  readonly logId: Uint8Array;
  readonly signer: Signer;
  /** `count` random bytes. */
  readonly random: (count: number) => Uint8Array;
}

const TAGS: Readonly<Record<string, string>> = { action: "", authorization: "type", outcome: "status" };

/** A section with a salt beside every value. */
function salted(reader: JsonReader, section: string, random: SignOptions["random"]): string {
  const fields: string[] = [];
  reader.enterObject();
  for (let name = reader.nextKey(); name !== null; name = reader.nextKey()) {
    const text = reader.readCanonical();
    const key = JSON.stringify(name);
    if (name === TAGS[section]) {
      fields.push(`${key}:${text}`);
      continue;
    }
    const form = readFieldForm(text, `/${section}/${name}`);
    if ("commitment" in form) fields.push(`${key}:{"$commitment":"${toHex(form.commitment)}"}`);
    else {
      fields.push(`${key}:{"$value":${form.text},"$salt":"${toHex(form.salt ?? random(SALT_BYTES))}"}`);
    }
  }
  return `{${fields.join(",")}}`;
}

/**
 * The entry's text with salts and the signature. A signature that it has already is replaced.
 *
 * @param text one entry as JSON, with its id: the id is signed
 * @throws `EntryError` or `JsonError` for what the service would refuse, and for an entry without an id
 */
export function signEntry(text: string, options: SignOptions): string {
  const { crypto, logId, signer, random } = options;
  const reader = new JsonReader(text);
  const members: string[] = [];
  let hasId = false;
  if (reader.peek() !== "object") throw refuse("invalid-field", "", "an entry is an object");
  reader.enterObject();
  for (let name = reader.nextKey(); name !== null; name = reader.nextKey()) {
    if (name === "id") hasId = true;
    const isSection = Object.hasOwn(TAGS, name) && reader.peek() === "object";
    const value = isSection ? salted(reader, name, random) : reader.readCanonical();
    if (name !== "client") members.push(`${JSON.stringify(name)}:${value}`);
  }
  reader.finish();
  if (!hasId) throw refuse("missing-field", "/id", "an entry that is signed has an id");
  const key = toHex(signer.publicKey);
  const withClient = (signature: string): string =>
    `{${[...members, `"client":{"key":"${key}","signature":"${signature}"}`].join(",")}}`;
  let signature = "";
  const verifyClient = (body: LeafBody): boolean => {
    signature = toHex(signer.sign(signedMessage("client", crypto.sha256(encodeStatement(logId, body)))));
    return true;
  };
  // Read as the service will read it, up to the place where it checks the signature: what is signed is what it checks.
  prepareEntry(new JsonReader(withClient("00".repeat(64))), {
    crypto,
    credential: new Uint8Array(16),
    defaultReporter: "agent",
    writer: "client",
    random,
    newId: () => "",
    verifyClient,
  });
  return withClient(signature);
}
