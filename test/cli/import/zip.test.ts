import { crc32, deflateRawSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { isZip, zipMembers } from "../../../cli/import/zip.ts";

interface Part {
  name: string;
  content: Buffer;
  stored?: boolean;
  /** Overrides for damage. */
  crc?: number;
  size?: number;
  flags?: number;
  method?: number;
}

/** A small archive, written here from the specification, so that the reader is not checked against itself. */
function archive(parts: Part[], comment = ""): Uint8Array {
  const bodies: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const part of parts) {
    const name = Buffer.from(part.name);
    const data = part.stored ? part.content : deflateRawSync(part.content);
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    fields.writeUInt16LE(part.flags ?? 0, 2);
    fields.writeUInt16LE(part.method ?? (part.stored ? 0 : 8), 4);
    fields.writeUInt32LE(part.crc ?? crc32(part.content), 10);
    fields.writeUInt32LE(data.length, 14);
    fields.writeUInt32LE(part.size ?? part.content.length, 18);
    fields.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04", "latin1"), fields, name, data]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x00", "latin1"), fields, tail, name]));
    bodies.push(local);
    offset += local.length;
  }
  const list = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(parts.length, 4);
  end.writeUInt16LE(parts.length, 6);
  end.writeUInt32LE(list.length, 8);
  end.writeUInt32LE(offset, 12);
  end.writeUInt16LE(comment.length, 16);
  return Buffer.concat([...bodies, list, Buffer.from("PK\x05\x06", "latin1"), end, Buffer.from(comment)]);
}

const text = async (bytes: Uint8Array, index = 0): Promise<string> =>
  new TextDecoder().decode(await zipMembers(bytes)[index]!.read());

const long = Buffer.from("abc ".repeat(50_000));

describe("zipMembers", () => {
  it("reads stored and deflated members, with a comment behind them", async () => {
    const bytes = archive(
      [
        { name: "header.json", content: Buffer.from("{}"), stored: true },
        { name: "samples/1_epoch_1.json", content: long },
        { name: "empty", content: Buffer.alloc(0) },
      ],
      "a comment",
    );
    expect(isZip(bytes)).toBe(true);
    expect(zipMembers(bytes).map(({ name, size }) => [name, size])).toEqual([
      ["header.json", 2],
      ["samples/1_epoch_1.json", 200_000],
      ["empty", 0],
    ]);
    expect(await text(bytes, 0)).toBe("{}");
    expect(await text(bytes, 1)).toBe(long.toString());
    expect(await text(bytes, 2)).toBe("");
  });

  it("reads an archive that lies inside a larger buffer", async () => {
    const bytes = archive([{ name: "a", content: long }]);
    const outer = new Uint8Array(bytes.length + 7);
    outer.set(bytes, 7);
    expect(await text(outer.subarray(7))).toBe(long.toString());
  });

  it.each([
    ["a wrong checksum", { crc: 1 }],
    ["a size that is too small (a bomb says so)", { size: 10 }],
    ["a size that is too large", { size: 300_000 }],
    ["a size over the limit", { size: 0xfffffff0 }],
    ["encryption", { flags: 1 }],
    ["a method that is not known", { method: 12 }],
  ])("refuses %s", async (_, damage) => {
    await expect(text(archive([{ name: "a", content: long, ...damage }]))).rejects.toMatchObject({
      code: "import-zip",
    });
  });

  it("refuses an archive that is cut off anywhere", async () => {
    const bytes = archive([{ name: "a", content: Buffer.from("hello") }]);
    for (let length = 0; length < bytes.length; length += 1) {
      await expect((async () => text(bytes.subarray(0, length)))()).rejects.toThrow(
        expect.objectContaining({ code: "import-zip" }),
      );
    }
  });

  it("refuses damaged compressed data", async () => {
    const bytes = archive([{ name: "a", content: long }]);
    bytes.fill(0xff, 40, 60);
    await expect(text(bytes)).rejects.toMatchObject({ code: "import-zip" });
  });
});
