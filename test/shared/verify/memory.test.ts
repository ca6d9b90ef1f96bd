import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { LineSplitter } from "../../../shared/bundle/lines.ts";
import { utf8 } from "../../../shared/bytes.ts";
import { BundleVerifier } from "../../../shared/verify/bundle.ts";
import { fieldsLine, headerLine, leafLine, registryLine, TestLog, TestTenant } from "./test-tenant.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Bytes that are in use once all garbage is gone. */
function inUse(): number {
  collect();
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  return heapUsed + external + arrayBuffers;
}

/** How much more memory is in use after a bundle of that many entries was read, and before the report. */
function growth(count: number): number {
  const tenant = new TestTenant("memory");
  const log = new TestLog(tenant);
  const verifier = new BundleVerifier(nativeCrypto, { verifiedBy: "test", registryId: tenant.registryId });
  const splitter = new LineSplitter();
  const feed = (line: string) => {
    for (const whole of splitter.push(utf8(`${line}\n`))) verifier.line(whole);
  };
  feed(headerLine(log, 1, count));
  tenant.records.forEach((record, epoch) => {
    feed(registryLine(record, epoch));
  });
  let before = 0;
  for (let i = 1; i <= count; i++) {
    const entry = log.append();
    feed(leafLine(entry));
    feed(fieldsLine("content", entry));
    // The builder must not keep what the verifier is measured by.
    log.entries.splice(0, log.entries.length, entry);
    if (i === 500) before = inUse();
  }
  const grown = inUse() - before;
  feed(JSON.stringify({ t: "checkpoint", checkpoint: log.checkpointOfEdge() }));
  expect(verifier.finish()).toMatchObject({ verdict: "intact", checked: count });
  return grown;
}

describe("the memory of a verification", () => {
  it("does not grow with the bundle: a hundred times the entries take no more than a small constant", () => {
    const small = growth(1_000);
    const large = growth(100_000);
    // A single hash kept for each entry would be 3.2 MB and more; the slack is for the engine's own.
    expect(large - Math.max(small, 0)).toBeLessThan(2_000_000);
  });

  it("does not grow with what is wrong with it", () => {
    const tenant = new TestTenant("memory");
    const log = new TestLog(tenant).fill(2);
    const verifier = new BundleVerifier(nativeCrypto, { verifiedBy: "test" });
    for (const line of log.lines().slice(0, -1)) verifier.line(line);
    const [first] = log.entries;
    if (first === undefined) throw new Error("unreachable");
    const again = leafLine(first);
    const feed = (times: number) => {
      for (let i = 0; i < times; i++) verifier.line(again);
      return inUse();
    };
    const before = feed(2_000);
    expect(feed(50_000) - before).toBeLessThan(2_000_000);
    expect(verifier.finish().issues.length).toBe(1024);
  });
});
