/**
 * The service's log as a client of witnesses (c2sp.org/tlog-witness): each new head is submitted, every answer is
 * understood, and only cosignatures that verify are kept.
 *
 * @module
 */
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { RunsealError } from "../../shared/errors.ts";
import { addSignatures, formatSignatureLine, openNote } from "../../shared/note/signed-note.ts";
import type { NoteKey } from "../../shared/note/vkey.ts";
import { isSupportedType, parseVkey, SIGNATURE_TYPES } from "../../shared/note/vkey.ts";
import {
  formatAddCheckpoint,
  parseCosignatures,
  parseSizeConflict,
  SIZE_CONTENT_TYPE,
} from "../../shared/note/witness.ts";

const TIMEOUT_MS = 10_000;
/** Characters of an answer that are looked at. */
const MAX_ANSWER = 65_536;
/** Seconds to leave a witness alone where it says busy and not how long; and the most that it may ask for. */
const DEFAULT_PAUSE_S = 60;
const MAX_PAUSE_S = 3600;

export interface Witness {
  readonly name: string;
  /** Submission prefix; `/add-checkpoint` is put after it. */
  readonly url: string;
  readonly key: NoteKey;
}

/** How a submission ended. */
export type WitnessOutcome =
  | "cosigned"
  | "bad-cosignature"
  | "unknown-log"
  | "key-refused"
  | "request-refused"
  | "inconsistent"
  | "ahead"
  | "forked"
  | "busy"
  | "unexpected"
  | "unreachable";

export interface WitnessAnswer {
  readonly outcome: WitnessOutcome;
  /** The size that the witness has of the log, as far as is known. */
  readonly size: number;
  /** The signature line, where the outcome is `cosigned`. */
  readonly cosignature: string | null;
  /** Milliseconds to leave it alone. */
  readonly pauseMs: number;
}

function badConfig(): RunsealError {
  return new RunsealError("bad-witnesses", "WITNESSES is not [{name, url, vkey}...] with cosignature keys");
}

/** The configured witnesses. Throws `RunsealError("bad-witnesses")`. */
export function parseWitnesses(crypto: CryptoPort, text: string | undefined): Witness[] {
  if (text === undefined || text === "") return [];
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw badConfig();
  }
  if (!Array.isArray(value)) throw badConfig();
  return value.map((item: Readonly<Record<string, unknown>> | null): Witness => {
    const { name, url, vkey } = item ?? {};
    if (typeof name !== "string" || typeof vkey !== "string" || typeof url !== "string") throw badConfig();
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) throw badConfig();
    let key: NoteKey;
    try {
      key = parseVkey(crypto, vkey);
    } catch {
      throw badConfig();
    }
    if (!isSupportedType(key.type) || key.type !== SIGNATURE_TYPES.cosignature) throw badConfig();
    return { name, url: url.replace(/\/+$/, ""), key };
  });
}

/** The witness' signature line for the note, if the body holds one that verifies. */
function verifiedLine(crypto: CryptoPort, key: NoteKey, checkpoint: string, body: string): string | null {
  try {
    const own = parseCosignatures(body).filter((one) => one.name === key.name && one.keyId === key.keyId);
    const [signature] = own;
    if (signature === undefined) return null;
    openNote(crypto, addSignatures(checkpoint, [signature]), [key]);
    return formatSignatureLine(signature);
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    return null;
  }
}

function pauseOf(response: Response): number {
  const asked = Number(response.headers.get("retry-after") ?? Number.NaN);
  const seconds = Number.isFinite(asked) && asked >= 0 ? Math.min(asked, MAX_PAUSE_S) : DEFAULT_PAUSE_S;
  return seconds * 1000;
}

export interface Submission {
  readonly crypto: CryptoPort;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly size: number;
  /** The signed note of that size. */
  readonly checkpoint: string;
  /** The consistency proof from a size to this one. */
  readonly proof: (from: number) => Uint8Array[];
}

/**
 * Submits a head. A witness that has another size than thought says so, and is asked once more from there.
 *
 * @param known the size that the witness has, as far as is known; 0 for none
 */
export async function askWitness(
  witness: Witness,
  submission: Submission,
  known: number,
): Promise<WitnessAnswer> {
  const { crypto, checkpoint, size } = submission;
  const answer = (outcome: WitnessOutcome, at: number, more: Partial<WitnessAnswer> = {}): WitnessAnswer => {
    return { outcome, size: at, cosignature: null, pauseMs: 0, ...more };
  };
  let from = Math.min(known, size);
  for (let attempt = 0; attempt < 2; attempt++) {
    const proof = from === 0 || from === size ? [] : submission.proof(from);
    let response: Response;
    let body: string;
    try {
      response = await submission.fetch(`${witness.url}/add-checkpoint`, {
        method: "POST",
        body: formatAddCheckpoint({ oldSize: from, proof, checkpoint }),
        redirect: "manual",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      body = (await response.text()).slice(0, MAX_ANSWER);
    } catch {
      return answer("unreachable", from);
    }
    switch (response.status) {
      case 200: {
        const cosignature = verifiedLine(crypto, witness.key, checkpoint, body);
        return cosignature === null
          ? answer("bad-cosignature", from)
          : answer("cosigned", size, { cosignature });
      }
      case 409: {
        const type = response.headers.get("content-type") ?? "";
        const there = type.startsWith(SIZE_CONTENT_TYPE) ? parseSizeConflict(body) : undefined;
        if (there === undefined) return answer("unexpected", from);
        // It has seen more of this log than there is, or another tree of this size: nothing that we may paper over.
        if (there > size) return answer("ahead", there);
        if (there === from) return answer("forked", there);
        from = there;
        continue;
      }
      case 400:
        return answer("request-refused", from);
      case 403:
        return answer("key-refused", from);
      case 404:
        return answer("unknown-log", from);
      case 422:
        return answer("inconsistent", from);
      default: {
        const busy = response.status === 429 || response.status >= 500;
        return busy ? answer("busy", from, { pauseMs: pauseOf(response) }) : answer("unexpected", from);
      }
    }
  }
  // It named two sizes in a row: another client of the same log is at work.
  return answer("unexpected", from);
}
