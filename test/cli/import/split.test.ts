import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { elementsOf, layoutOf, linesOf, recordsOf } from "../../../cli/import/split.ts";

const texts = (records: Iterable<{ text: string }>): string[] => [...records].map((record) => record.text);

describe("layoutOf", () => {
  it("tells an array, lines and a single document apart", () => {
    expect(layoutOf('[{"a":1}]')).toBe("array");
    expect(layoutOf(" \n[\n 1,\n 2\n]\n")).toBe("array");
    expect(layoutOf('{"a":1}\n{"a":2}\n')).toBe("lines");
    expect(layoutOf("[1]\n[2]")).toBe("lines");
    expect(layoutOf('{"a":1}\n\n')).toBe("single");
    expect(layoutOf('{\n "a": "}\\n"\n}\n')).toBe("single");
    expect(layoutOf('{"a":{\n{"a":1}\n')).toBe("lines");
    expect(layoutOf('"massive error"\n{"a":1}')).toBe("lines");
  });
});

describe("records", () => {
  it("cuts an array into the texts of its elements, whatever they hold", () => {
    fc.assert(
      fc.property(
        fc.array(fc.json(), { minLength: 1 }),
        fc.constantFrom("", " ", "\n "),
        (elements, space) => {
          const array = `[${elements.map((text) => space + text + space).join(",")}]`;
          expect(texts(elementsOf(array)).map((text) => JSON.parse(text))).toEqual(
            elements.map((text) => JSON.parse(text)),
          );
        },
      ),
    );
  });

  it("is not misled by brackets, quotes and backslashes in strings", () => {
    expect(texts(elementsOf('[{"a":"]}\\\\"},"[\\"{",3]'))).toEqual(['{"a":"]}\\\\"}', '"[\\"{"', "3"]);
  });

  it("gives the whole elements of an array that is cut off, and the rest as it is", () => {
    expect(texts(elementsOf('[{"a":1},{"a":2},{"a"'))).toEqual(['{"a":1}', '{"a":2}', '{"a"']);
    expect(texts(elementsOf("[1, 2"))).toEqual(["1", "2"]);
  });

  it("numbers lines as an editor does, and leaves out empty ones", () => {
    expect([...linesOf("1\n\n  2 \r\n3")]).toEqual([
      { text: "1", where: "line 1" },
      { text: "2", where: "line 3" },
      { text: "3", where: "line 4" },
    ]);
  });

  it("gives a pretty-printed document as one record", () => {
    expect(texts(recordsOf('{\n "a": 1\n}\n'))).toEqual(['{\n "a": 1\n}']);
    expect(texts(recordsOf(""))).toEqual([]);
  });
});
