/**
 * Third-party vectors, oracles and the corpus lie beside the checkout in `../shared`; tests read them in place.
 * In CI their absence is a failure; in a plain clone elsewhere the tests that need them are skipped by name.
 *
 * @module
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, it } from "vitest";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..", "shared");

/** Absolute path of a file or folder of the shared material. */
export function sharedPath(relative: string): string {
  return join(root, relative);
}

/** Whether that file or folder is there. */
export function hasShared(relative: string): boolean {
  return existsSync(sharedPath(relative));
}

/** Text of a shared file. */
export function readShared(relative: string): string {
  return readFileSync(sharedPath(relative), "utf8");
}

/** Parsed JSON of a shared file. */
export function readSharedJson<T>(relative: string): T {
  return JSON.parse(readShared(relative)) as T;
}

/** A `describe` that needs a shared file: it fails in CI without it, and is skipped by name elsewhere. */
export function describeWithShared(name: string, relative: string, body: () => void): void {
  if (hasShared(relative)) {
    describe(name, body);
  } else if (process.env.CI === "true") {
    describe(name, () => {
      it(`finds ${relative} beside the checkout`, () => {
        throw new Error(`${relative} is missing and CI=true`);
      });
    });
  } else {
    describe.skip(`${name} (needs ${relative} beside the checkout)`, () => {
      it("is skipped", () => {});
    });
  }
}
