import { describe, expect, it } from "vitest";
import { lines } from "../../workers/http/lines.ts";

/** A request whose body comes in chunks of that many bytes. */
function chunked(text: string, size: number): Request {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + size));
      at += size;
    },
  });
  return new Request("http://runseal.test/", { method: "POST", body });
}

async function read(text: string, size: number, limit = 64 * 1024 * 1024): Promise<string[]> {
  const out: string[] = [];
  for await (const line of lines(chunked(text, size), limit)) out.push(line);
  return out;
}

describe("the lines of a body", () => {
  it.each([1, 2, 3, 5, 1000])("are the same in chunks of %i bytes", async (size) => {
    expect(await read("", size)).toEqual([]);
    expect(await read("\n", size)).toEqual([""]);
    expect(await read("ab\n\ncé😀\n", size)).toEqual(["ab", "", "cé😀"]);
    expect(await read("a\nb", size)).toEqual(["a", "b"]);
  });

  it("end at the limit, and at bytes that are not UTF-8", async () => {
    await expect(read("a\n".repeat(10), 4, 8)).rejects.toMatchObject({ code: "batch-too-large" });
    const broken = new Request("http://runseal.test/", {
      method: "POST",
      body: new Uint8Array([0x61, 0xff]),
    });
    const first = lines(broken, 8).next();
    await expect(first).rejects.toMatchObject({ code: "json-syntax" });
  });

  it("cost no more the longer they are", async () => {
    const text = "x".repeat(8 * 1024 * 1024);
    // To search the whole line again for each chunk takes minutes: more than a test has.
    expect(await read(text, 1024)).toEqual([text]);
  });
});
