import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { fromHex, toHex } from "../../../shared/bytes.ts";
import { witnessKey } from "../../../shared/note/vkey.ts";
import { readVectors } from "../../vectors/read.ts";
import {
  cosignatureLine,
  headOf,
  headOfHeads,
  recordLine,
  serviceLogOf,
  tenantLine,
  tenantLogOf,
} from "./heads-of.ts";
import { fileOf, grow, SMALL_PLANS, verifyBytes } from "./random-log.ts";
import { readLeaf, Unsupported } from "./second-formats.ts";
import type { Given } from "./second-verifier.ts";
import { secondVerify } from "./second-verifier.ts";
import { signerOf, type TestLog } from "./test-tenant.ts";

const WITNESS = { name: "w.example/w", signer: signerOf("w"), time: 1_800_000_000n };

/** The log listed in its tenant's log, before and after the registry's records, and that in the service's. */
function anchorLines(log: TestLog): string[] {
  const size = log.entries.length;
  const heads = tenantLogOf(log.tenant);
  const lists = [Math.ceil(size / 2), size].map(
    (listed) => [heads.list([headOf(log, listed)]), listed] as const,
  );
  const records = log.tenant.records.map(({ bytes }) => heads.push(bytes));
  const last = heads.list([headOf(log)]);
  const service = serviceLogOf(nativeCrypto);
  const listed = Math.ceil(heads.size / 2);
  const at = service.list([headOfHeads(heads, listed)]);
  service.list([headOfHeads(heads)]);
  return [
    ...[...lists, [last, size] as const].map(([index, entries]) => tenantLine(heads, index, log, entries)),
    ...records.slice(-2).map((index) => recordLine(heads, index)),
    cosignatureLine(service, at, heads, listed, [WITNESS]),
  ];
}

interface BundleVector {
  name: string;
  given: { registry_id?: string; checkpoint?: string; head?: string; witnesses?: string[] };
  lines: string[];
  verdict: string;
  issues: unknown[];
}

describe("a verifier written from docs/format.md alone", () => {
  it.each(readVectors<BundleVector[]>("bundle").map((one) => [one.name, one] as const))(
    "agrees on: %s",
    (_, vector) => {
      const { registry_id, checkpoint, head, witnesses = [] } = vector.given;
      const [seq = "", hash = ""] = head?.split(":") ?? [];
      const report = secondVerify(vector.lines, {
        ...(registry_id === undefined ? {} : { registryId: registry_id }),
        ...(checkpoint === undefined ? {} : { checkpoint }),
        ...(head === undefined ? {} : { keptHead: { seq: Number(seq), hash } }),
        witnessKeys: witnesses.map((vkey) => {
          const [name = "", , material = ""] = vkey.split("+");
          return { name, key: new Uint8Array(Buffer.from(material, "base64").subarray(1)) };
        }),
      });
      expect(report).toEqual({ verdict: vector.verdict, issues: vector.issues });
    },
  );

  it("reads every leaf of the vectors, and refuses the others for the same reason", () => {
    for (const { encoded } of readVectors<{ encoded: string }[]>("leaf")) readLeaf(fromHex(encoded));
    for (const { name, encoded, refused } of readVectors<
      { name: string; encoded: string; refused: string }[]
    >("leaf-refused")) {
      let found = "accepted";
      try {
        readLeaf(fromHex(encoded));
      } catch (error) {
        found = error instanceof Unsupported ? "unsupported" : "malformed";
      }
      expect([name, found]).toEqual([name, refused]);
    }
  });

  const grown = SMALL_PLANS.map((plan) => {
    const { log, heads } = grow(plan);
    const lines = [...log.lines(), ...anchorLines(log)];
    return { log, heads, lines, file: fileOf(lines) };
  });
  const pick = <T>(from: readonly T[], n: number): T => {
    const one = from[n % from.length];
    if (one === undefined) throw new Error("there is nothing to pick from");
    return one;
  };
  const damage = fc.oneof(
    fc.record({ kind: fc.constant("flip" as const), at: fc.nat(), bit: fc.nat(7) }),
    fc.record({ kind: fc.constant("cut" as const), at: fc.nat() }),
    fc.record({
      kind: fc.constant("lines" as const),
      steps: fc.array(fc.tuple(fc.nat(3), fc.nat(), fc.nat(), fc.nat()), { minLength: 1, maxLength: 3 }),
    }),
  );
  const kept = fc.record({
    pin: fc.boolean(),
    witness: fc.boolean(),
    checkpoint: fc.option(fc.nat()),
    head: fc.option(fc.nat()),
  });

  it("agrees on every issue of damaged bundles, whatever was kept", () => {
    fc.assert(
      fc.property(fc.constantFrom(...grown), damage, kept, ({ log, heads, lines, file }, what, keep) => {
        let damaged: Uint8Array = file.slice();
        if (what.kind === "flip") {
          const at = what.at % damaged.length;
          damaged[at] = (damaged[at] ?? 0) ^ (1 << what.bit);
        } else if (what.kind === "cut") {
          damaged = damaged.slice(0, what.at % damaged.length);
        } else {
          const changed = [...lines];
          for (const [step, a, b, c] of what.steps) {
            const [i, j] = [a % changed.length, b % changed.length];
            const line = pick(changed, i);
            if (step === 0 && changed.length > 1) changed.splice(i, 1);
            if (step === 1) changed.splice(j, 0, line);
            if (step === 2) [changed[i], changed[j]] = [pick(changed, j), line];
            if (step === 3) changed.splice(i, 1, pick(pick(grown, c).lines, b));
          }
          damaged = fileOf(changed);
        }
        const text = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true }).decode(damaged);
        // The second verifier gets text: bytes that are no UTF-8 are no bundle for it.
        fc.pre(!text.includes("\ufffd"));
        const head = keep.head === null ? null : pick(heads, keep.head);
        const given: Given = {
          ...(keep.pin ? { registryId: log.tenant.registryId } : {}),
          ...(keep.checkpoint === null ? {} : { checkpoint: pick(heads, keep.checkpoint).checkpoint }),
          ...(head === null ? {} : { keptHead: { seq: head.size, hash: toHex(head.hash) } }),
        };
        const witnesses = keep.witness
          ? [witnessKey(nativeCrypto, WITNESS.name, WITNESS.signer.publicKey)]
          : [];
        const { verdict, issues } = verifyBytes(damaged, { ...given, witnesses });
        const found = issues.map(({ seq, code }) => ({ seq, code }));
        expect({ verdict, issues: found }).toEqual(
          secondVerify(text.split("\n"), {
            ...given,
            witnessKeys: witnesses.map(({ name, publicKey }) => ({ name, key: publicKey })),
          }),
        );
      }),
      { numRuns: 1000 },
    );
  });
});
