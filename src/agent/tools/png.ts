/**
 * PNG in and out (PNG specification, third edition). Reading is fast-png's; writing is here, because its encoder
 * filters no rows, which makes a screenshot of photos twice as large, and deflates on the main thread.
 */
import { promisify } from "node:util";
import { deflate } from "node:zlib";
import { convertIndexedToRgb, decode, type DecodedPng } from "fast-png";
import type { Pixels } from "./pixels.ts";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const UP = 2;
const PAETH = 4;
/** CRC-32 by byte (PNG, annex D); Node's own is missing in the first releases of 20. */
const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = (value & 1) === 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});
const deflateAsync = promisify(deflate);

/** Width and height of a PNG, from its header alone; undefined when it is none. */
export function pngSize(png: Uint8Array): { width: number; height: number } | undefined {
  const bytes = Buffer.from(png.buffer, png.byteOffset, png.length);
  if (bytes.length < 33 || !bytes.subarray(0, 8).equals(SIGNATURE) || bytes.toString("latin1", 12, 16) !== "IHDR") return undefined;
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

/** A PNG's pixels; transparency is dropped, 16 bits become 8. Throws when it is damaged. */
export function readPng(png: Uint8Array): Pixels {
  const picture = decode(png);
  const { width, height } = picture;
  const { data, channels, shift } = flat(picture);
  const isGray = channels < 3;
  const rgb = new Uint8Array(width * height * 3);
  for (let pixel = 0; pixel < width * height; pixel += 1) {
    for (let channel = 0; channel < 3; channel += 1)
      rgb[pixel * 3 + channel] = (data[pixel * channels + (isGray ? 0 : channel)] ?? 0) >> shift;
  }
  return { width, height, rgb };
}

function flat(picture: DecodedPng): { data: ArrayLike<number>; channels: number; shift: number } {
  if (picture.palette) return { data: convertIndexedToRgb(picture), channels: picture.palette[0]?.length ?? 3, shift: 0 };
  if (picture.depth < 8) throw new RangeError("grey of less than 8 bits is not read");
  return { data: picture.data, channels: picture.channels, shift: picture.depth === 16 ? 8 : 0 };
}

/** The picture as a PNG. */
export async function writePng(picture: Pixels): Promise<Buffer> {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(picture.width, 0);
  header.writeUInt32BE(picture.height, 4);
  // 8 bits a sample, truecolour; deflate, filters by row, not interlaced.
  header.set([8, 2, 0, 0, 0], 8);
  const data = await deflateAsync(filtered(picture), { level: 6 });
  return Buffer.concat([SIGNATURE, chunk("IHDR", header), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  out.set(body, 4);
  out.writeUInt32BE(crc32(body), body.length + 4);
  return out;
}

function crc32(bytes: Buffer): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (CRC[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

/** Rows with their filter: the one of two whose differences are smaller in sum (PNG, 12.7). Up suits user interfaces, Paeth pictures. */
function filtered({ width, height, rgb }: Pixels): Buffer {
  const stride = width * 3;
  const out = Buffer.alloc((stride + 1) * height);
  const paethRow = Buffer.alloc(stride);
  for (let y = 0; y < height; y += 1) {
    const row = out.subarray(y * (stride + 1) + 1, (y + 1) * (stride + 1));
    const start = y * stride;
    let [upSum, paethSum] = [0, 0];
    for (let x = 0; x < stride; x += 1) {
      const value = rgb[start + x] ?? 0;
      const left = x < 3 ? 0 : (rgb[start + x - 3] ?? 0);
      const above = y === 0 ? 0 : (rgb[start + x - stride] ?? 0);
      const corner = x < 3 || y === 0 ? 0 : (rgb[start + x - stride - 3] ?? 0);
      const up = (value - above) & 0xff;
      const paeth = (value - predictor(left, above, corner)) & 0xff;
      row[x] = up;
      paethRow[x] = paeth;
      upSum += up < 128 ? up : 256 - up;
      paethSum += paeth < 128 ? paeth : 256 - paeth;
    }
    out[y * (stride + 1)] = paethSum < upSum ? PAETH : UP;
    if (paethSum < upSum) row.set(paethRow);
  }
  return out;
}

function predictor(left: number, above: number, corner: number): number {
  const estimate = left + above - corner;
  const [toLeft, toAbove, toCorner] = [Math.abs(estimate - left), Math.abs(estimate - above), Math.abs(estimate - corner)];
  if (toLeft <= toAbove && toLeft <= toCorner) return left;
  return toAbove <= toCorner ? above : corner;
}
