/**
 * What a person pastes: a registry id, a checkpoint, a head.
 *
 * @module
 */
import { RunsealError } from "../../shared/errors.ts";
import { parseCheckpoint } from "../../shared/note/checkpoint.ts";
import type { Kept } from "./verify-file.ts";

/** What is wrong, by the name of the input. */
export type InputErrors = Partial<Record<"registry" | "checkpoint" | "head", string>>;

/** A pasted note may have lost the line feed at its end, or have gained some. */
function noteOf(text: string): string {
  return `${text.trim()}\n`;
}

/** Reads the three inputs; blank ones are left out. */
export function readKept(texts: Readonly<Record<"registry" | "checkpoint" | "head", string>>): {
  kept: Kept;
  errors: InputErrors;
} {
  const errors: InputErrors = {};
  const registry = texts.registry.trim().toLowerCase();
  if (registry !== "" && !/^[0-9a-f]{64}$/.test(registry)) {
    errors.registry = "A registry id has 64 hexadecimal digits.";
  }
  const checkpoint = texts.checkpoint.trim() === "" ? "" : noteOf(texts.checkpoint);
  if (checkpoint !== "") {
    try {
      parseCheckpoint(checkpoint);
    } catch (error) {
      if (!(error instanceof RunsealError)) throw error;
      errors.checkpoint = "This is no checkpoint: three lines, an empty line, and a signature line.";
    }
  }
  const head = texts.head.trim();
  const [, seq = "", hash = ""] = /^([1-9][0-9]{0,15}):([0-9a-f]{64})$/.exec(head) ?? [];
  if (head !== "" && hash === "")
    errors.head = "A head is SEQ:HASH: a number, a colon, 64 hexadecimal digits.";
  return {
    errors,
    kept: {
      ...(registry === "" ? {} : { registryId: registry }),
      ...(checkpoint === "" ? {} : { checkpoint }),
      ...(hash === "" ? {} : { keptHead: { seq: Number(seq), hash } }),
    },
  };
}
