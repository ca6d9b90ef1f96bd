/**
 * What the importers share while they read one file: the options, and what was odd about the file itself.
 *
 * @module
 */
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { pureCrypto } from "../../shared/crypto/pure.ts";
import type { JsonValue } from "../../shared/json/value.ts";
import { type Losses, readJson } from "./lenient.ts";
import type { SourceRecord } from "./split.ts";
import type { ImportOptions } from "./types.ts";

/** Notes on the file that one run carries: a file of another format would have one for each of its lines. */
const MAX_NOTES = 50;

/** One import of one file. */
export class ImportContext {
  readonly options: ImportOptions;
  readonly crypto: Pick<CryptoPort, "sha256">;
  #notes: string[] = [];
  #more = 0;

  constructor(options: ImportOptions) {
    this.options = options;
    this.crypto = options.crypto ?? pureCrypto;
  }

  /** Remembers something about the file; the next run that is given carries it. */
  skip(note: string): void {
    if (this.#notes.length < MAX_NOTES) this.#notes.push(note);
    else this.#more += 1;
  }

  /** The notes since the last call. */
  takeNotes(): string[] {
    const notes = this.#notes;
    if (this.#more > 0) notes.push(`${this.#more} more parts of the file could not be read`);
    this.#notes = [];
    this.#more = 0;
    return notes;
  }

  /** The value of a record, or undefined, with a note, where it is not JSON. */
  read(record: SourceRecord, losses: Losses): JsonValue | undefined {
    try {
      return readJson(record.text, losses);
    } catch {
      this.skip(`${record.where} is not JSON (cut off?); it is not imported`);
      return undefined;
    }
  }
}
