/**
 * Files as the commands read them: line by line, in bounded memory.
 *
 * @module
 */
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { UsageError } from "./command.ts";

/** The lines of a file, or of standard input for `-`, without their line feeds. Throws `UsageError`. */
export async function* fileLines(path: string): AsyncGenerator<string> {
  const stream = path === "-" ? process.stdin : createReadStream(path, { highWaterMark: 1 << 20 });
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let rest = "";
  try {
    for await (const chunk of stream) {
      rest += decoder.decode(chunk as Uint8Array, { stream: true });
      const parts = rest.split("\n");
      rest = parts.pop() ?? "";
      yield* parts;
    }
    rest += decoder.decode();
  } catch (error) {
    throw readError(path, error);
  }
  if (rest !== "") yield rest;
}

/** A whole file's text. Throws `UsageError`. */
export async function fileText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw readError(path, error);
  }
}

/** A whole file's bytes. Throws `UsageError`. */
export async function fileBytes(path: string): Promise<Uint8Array> {
  try {
    return await readFile(path);
  } catch (error) {
    throw readError(path, error);
  }
}

function readError(path: string, error: unknown): UsageError {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const reason: Readonly<Record<string, string>> = {
    ENOENT: "there is no such file",
    EACCES: "it may not be read",
    EISDIR: "it is a folder",
    ERR_ENCODING_INVALID_ENCODED_DATA: "it is not UTF-8",
  };
  return new UsageError(`${path}: ${reason[code] ?? "it can't be read"}`);
}
