import { describe, expect, it } from "vitest";
import { judgeAnchor } from "../../durable-objects/head-log/judge-anchor.ts";
import type { AnchorRequest } from "../../durable-objects/head-log/types.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { concat, toHex, utf8 } from "../../shared/bytes.ts";
import { RightEdge } from "../../shared/merkle/edge.ts";
import { consistencyNodes, foldProof } from "../../shared/merkle/proof.ts";

function rootOf(branch: string, begin: number, end: number): Uint8Array {
  const edge = new RightEdge(nativeCrypto);
  for (let i = begin; i < end; i++) edge.append(nativeCrypto.sha256(utf8(`${branch}/${i}`)));
  return edge.root();
}
function pathOf(branch: string, a: number, b: number): Uint8Array {
  const [from, to] = [Math.min(a, b), Math.max(a, b)];
  if (from === to || from === 0) return new Uint8Array();
  const plan = consistencyNodes(from, to);
  const nodes = plan.nodes.map(({ level, index }) =>
    rootOf(branch, index * 2 ** level, (index + 1) * 2 ** level),
  );
  return concat(...foldProof(nativeCrypto, plan, nodes));
}
const headOf = (size: number, branch = "main") => ({ size, root: toHex(rootOf(branch, 0, size)) });
const requestOf = (from: number, size: number, branch = "main"): AnchorRequest => ({
  logId: "00".repeat(32),
  checkpoint: "",
  where: "",
  receipt: null,
  by: "",
  from,
  path: pathOf(branch, from, size),
  ...headOf(size, branch),
});
const judge = (last: number | null, request: AnchorRequest) =>
  judgeAnchor(nativeCrypto, last === null ? null : headOf(last), request);

describe("an anchor", () => {
  it("advances with the proof that it goes on from the last; an older one of the same history changes nothing", () => {
    expect(judge(null, requestOf(0, 3))).toEqual({ status: "advanced" });
    expect(judge(3, requestOf(3, 7))).toEqual({ status: "advanced" });
    for (const size of [1, 2, 3]) expect(judge(3, requestOf(3, size))).toEqual({ status: "unchanged" });
  });

  it("of another history than the last is rejected, whatever its size, and so is one without its proof", () => {
    for (const size of [1, 3, 7])
      expect(judge(3, requestOf(3, size, "fork"))).toEqual({ status: "rejected" });
    for (const size of [2, 7]) {
      expect(judge(3, { ...requestOf(3, size), path: new Uint8Array() })).toEqual({ status: "rejected" });
    }
  });

  it("that was compared with another one than the last is to be compared again", () => {
    expect(judge(3, requestOf(0, 7))).toEqual({ status: "behind", size: 3 });
    expect(judge(null, requestOf(3, 7))).toEqual({ status: "behind", size: 0 });
  });
});
