import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { afterAll, beforeAll, expect, it } from "vitest";
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex } from "../../shared/bytes.ts";
import type { Ed25519Case } from "../shared/crypto/ed25519-vectors.ts";
import { allEd25519Cases } from "../shared/crypto/ed25519-vectors.ts";
import { describeWithShared } from "../support/shared-files.ts";

const root = join(fileURLToPath(import.meta.url), "..", "..", "..");

/** A Worker that runs the native port over the cases in the request's body. */
const WORKER = `
  import { nativeCrypto } from "./native/crypto.ts";
  import { fromHex, toHex } from "./shared/bytes.ts";
  export default {
    async fetch(request) {
      const cases = await request.json();
      const signer = nativeCrypto.signer(new Uint8Array(32).fill(5));
      return Response.json({
        agent: navigator.userAgent,
        wrong: cases
          .filter((one) => one.valid !==
            nativeCrypto.verifyEd25519(fromHex(one.key), fromHex(one.message), fromHex(one.signature)))
          .map((one) => one.name),
        hash: toHex(nativeCrypto.sha256(new Uint8Array(100))),
        key: toHex(signer.publicKey),
        signature: toHex(signer.sign(new Uint8Array(100))),
        plain: [nativeCrypto.sha256(new Uint8Array(1)), signer.publicKey, signer.sign(new Uint8Array(1))].every(
          (bytes) => Object.getPrototypeOf(bytes) === Uint8Array.prototype && bytes.buffer.byteLength === bytes.length),
      });
    },
  };`;

describeWithShared(
  "the native crypto port inside workerd",
  "vectors/extracted/cctv-strict-expectation.json",
  () => {
    let miniflare: Miniflare;
    let answer: Record<string, unknown>;
    let cases: Ed25519Case[];

    beforeAll(async () => {
      const bundle = await build({
        stdin: { contents: WORKER, resolveDir: root, loader: "js" },
        bundle: true,
        write: false,
        format: "esm",
        target: "es2022",
        external: ["node:*"],
      });
      miniflare = new Miniflare(
        convertV4MiniflareOptions({
          modules: true,
          script: bundle.outputFiles[0]!.text,
          compatibilityDate: "2026-09-01",
        }),
      );
      cases = allEd25519Cases();
      const response = await miniflare.dispatchFetch("http://localhost/", {
        method: "POST",
        body: JSON.stringify(cases),
      });
      answer = (await response.json()) as Record<string, unknown>;
    }, 60_000);

    afterAll(async () => {
      await miniflare?.dispose();
    });

    it("runs in workerd indeed", () => {
      expect(answer.agent).toBe("Cloudflare-Workers");
    });

    it("answers every published Ed25519 vector as in Node", () => {
      expect(cases).toHaveLength(151 + 914 + 12);
      expect(answer.wrong).toEqual([]);
    });

    it("hashes and signs as in Node, into plain arrays", () => {
      const signer = nativeCrypto.signer(new Uint8Array(32).fill(5));
      expect(answer.hash).toBe(toHex(nativeCrypto.sha256(new Uint8Array(100))));
      expect(answer.key).toBe(toHex(signer.publicKey));
      expect(answer.signature).toBe(toHex(signer.sign(new Uint8Array(100))));
      expect(answer.plain).toBe(true);
    });
  },
);
