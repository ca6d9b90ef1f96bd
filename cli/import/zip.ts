/**
 * Reads the ZIP archives that inspect writes (`.eval`): stored and deflated members, from the central directory.
 * Source: PKWARE APPNOTE 6.3.10, sections 4.3.7, 4.3.12, 4.3.16. No ZIP64, no encryption, no split archives.
 *
 * @module
 */
import { RunsealError } from "../../shared/errors.ts";

const END_OF_DIRECTORY = 0x06054b50;
const DIRECTORY_ENTRY = 0x02014b50;
const LOCAL_HEADER = 0x04034b50;
/** The end record is 22 bytes and a comment of at most 65,535 (section 4.3.16). */
const END_BYTES = 22;
const MAX_COMMENT = 0xffff;
/** A member larger than this unpacked is refused: an archive of a few kilobytes can claim any size. */
export const MAX_MEMBER_BYTES = 256 * 1024 * 1024;

/** One file of an archive. */
export interface ZipMember {
  readonly name: string;
  /** Bytes when unpacked, as the directory states. */
  readonly size: number;
  /** Unpacks it. Throws `RunsealError("import-zip")` where the stated size or CRC-32 does not hold. */
  read(): Promise<Uint8Array>;
}

/** Whether the bytes begin like a ZIP archive. */
export function isZip(bytes: Uint8Array): boolean {
  return bytes.length >= END_BYTES && bytes[0] === 0x50 && bytes[1] === 0x4b;
}

/** The members in directory order. Throws `RunsealError("import-zip")` where the archive is not readable. */
export function zipMembers(bytes: Uint8Array): ZipMember[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = findEnd(view);
  const count = view.getUint16(end + 10, true);
  let at = view.getUint32(end + 16, true);
  const members: ZipMember[] = [];
  for (let index = 0; index < count; index += 1) {
    if (at + 46 > view.byteLength || view.getUint32(at, true) !== DIRECTORY_ENTRY)
      throw bad("its directory is damaged");
    const nameLength = view.getUint16(at + 28, true);
    const name = new TextDecoder().decode(slice(bytes, at + 46, nameLength));
    members.push(member(bytes, view, at, name));
    at += 46 + nameLength + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
  return members;
}

function member(bytes: Uint8Array, view: DataView, entry: number, name: string): ZipMember {
  const flags = view.getUint16(entry + 8, true);
  const method = view.getUint16(entry + 10, true);
  const crc = view.getUint32(entry + 16, true);
  const packed = view.getUint32(entry + 20, true);
  const size = view.getUint32(entry + 24, true);
  const header = view.getUint32(entry + 42, true);
  return {
    name,
    size,
    async read() {
      if ((flags & 1) !== 0) throw bad("a member is encrypted");
      if (size > MAX_MEMBER_BYTES) throw bad("a member is too large");
      if (header + 30 > view.byteLength || view.getUint32(header, true) !== LOCAL_HEADER) {
        throw bad("a member's header is damaged");
      }
      const start = header + 30 + view.getUint16(header + 26, true) + view.getUint16(header + 28, true);
      const data = slice(bytes, start, packed);
      if (method !== 0 && method !== 8) throw bad("a member's compression is neither stored nor deflated");
      const content = method === 0 ? data : await inflate(data, size);
      if (content.length !== size || crc32(content) !== crc)
        throw bad("a member does not match its checksum");
      return content;
    },
  };
}

function findEnd(view: DataView): number {
  const lowest = Math.max(0, view.byteLength - END_BYTES - MAX_COMMENT);
  for (let at = view.byteLength - END_BYTES; at >= lowest; at -= 1) {
    if (view.getUint32(at, true) === END_OF_DIRECTORY) return at;
  }
  throw bad("it has no directory (cut off, or not a ZIP file)");
}

function slice(bytes: Uint8Array, start: number, length: number): Uint8Array {
  if (start + length > bytes.length) throw bad("a member reaches past the end");
  return bytes.subarray(start, start + length);
}

/** Inflates to exactly `size` bytes and stops reading beyond them. */
async function inflate(data: Uint8Array, size: number): Promise<Uint8Array> {
  const out = new Uint8Array(size);
  let length = 0;
  try {
    const stream = new Blob([data as Uint8Array<ArrayBuffer>])
      .stream()
      .pipeThrough(new DecompressionStream("deflate-raw"));
    const reader = stream.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (length + value.length > size) {
        await reader.cancel();
        throw bad("a member is larger than it says");
      }
      out.set(value, length);
      length += value.length;
    }
  } catch (error) {
    throw error instanceof RunsealError ? error : bad("a member does not inflate");
  }
  return out.subarray(0, length);
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ (CRC_TABLE[(crc ^ byte) & 0xff] ?? 0);
  return (crc ^ 0xffffffff) >>> 0;
}

function bad(detail: string): RunsealError {
  return new RunsealError("import-zip", `the archive cannot be read: ${detail}`);
}
