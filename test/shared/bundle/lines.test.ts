import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_LINE_CHARS } from "../../../shared/bundle/format.ts";
import { LineSplitter } from "../../../shared/bundle/lines.ts";
import { concat, utf8 } from "../../../shared/bytes.ts";
import { verifyBytes } from "../verify/random-log.ts";

function split(chunks: readonly Uint8Array[]): string[] {
  const splitter = new LineSplitter();
  const out = chunks.flatMap((chunk) => [...splitter.push(chunk)]);
  return [...out, splitter.end()];
}

describe("a splitter of lines", () => {
  it("gives the text's lines, wherever the bytes are cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: "grapheme" }).map((text) => text.replaceAll("\n", ""))),
        fc.integer({ min: 1, max: 9 }),
        (lines, size) => {
          const bytes = utf8(lines.join("\n"));
          const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
            bytes.slice(i * size, i * size + size),
          );
          expect(split(chunks)).toEqual(lines.length === 0 ? [""] : lines);
          expect(split([bytes, new Uint8Array()])).toEqual(lines.length === 0 ? [""] : lines);
        },
      ),
    );
  });

  it("does not hold on to a buffer that is used again", () => {
    const splitter = new LineSplitter();
    const buffer = utf8("one");
    expect([...splitter.push(buffer)]).toEqual([]);
    buffer.set(utf8("two"));
    expect([...splitter.push(utf8("\n"))]).toEqual(["one"]);
  });

  it("lets bytes that are no UTF-8 cost their line alone, told from any text", () => {
    const lines = split([concat(utf8('{"a":"'), Uint8Array.of(0xff), utf8('"}\n{"b":1}\n'))]);
    expect(lines.map((line) => /\p{Surrogate}/u.test(line))).toEqual([true, false, false]);
    expect(lines[1]).toBe('{"b":1}');
  });

  it("keeps no more of a line that is too long than shows that it is", () => {
    const splitter = new LineSplitter();
    const chunk = new Uint8Array(1 << 20).fill(0x61);
    for (let i = 0; i < 100; i++) expect([...splitter.push(chunk)]).toEqual([]);
    const [line, ...more] = [...splitter.push(utf8("\n{}\n"))];
    expect(line?.length).toBeGreaterThan(MAX_LINE_CHARS);
    expect(line?.length).toBeLessThan(4 * MAX_LINE_CHARS);
    expect(more).toEqual(["{}"]);
  });

  it("makes of bad bytes a malformed line, which the verdict names", () => {
    const report = verifyBytes(concat(utf8('{"a":"'), Uint8Array.of(0xff), utf8('"}\n')));
    expect(report).toMatchObject({ verdict: "broken", break: { verdict: "malformed", seq: 0 } });
    expect(report.break?.detail).toMatch(/^line 1: /);
  });
});
