/** Reads what `xwd` prints: a window dump of X11, version 7, with true colours (XWDFile.h). Pure. */
import type { Pixels } from "./pixels.ts";

const VERSION = 7;
const Z_PIXMAP = 2;
/** Visual classes with colours in the pixel itself. */
const TRUE_COLOR = 4;
const DIRECT_COLOR = 5;
const COLOR_ENTRY_BYTES = 12;
const FIELDS = 25;

/** A dump that cannot be read; the text is for a person. */
export class XwdError extends Error {
  override readonly name = "XwdError";
}

/** Width and height of a dump, from its header. Throws XwdError. */
export function xwdSize(dump: Buffer): { width: number; height: number } {
  const { width, height } = readHeader(dump);
  return { width, height };
}

/** The dump's pixels. Throws XwdError. */
export function readXwd(dump: Buffer): Pixels {
  const head = readHeader(dump);
  const { width, height, bytesPerPixel, bytesPerLine, isBigEndian } = head;
  const data = dump.subarray(head.dataAt);
  if (data.length < bytesPerLine * height || bytesPerLine < bytesPerPixel * width) throw new XwdError("the window dump is cut");
  const channels = head.masks.map(channelOf);
  const rgb = new Uint8Array(width * height * 3);
  let out = 0;
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const at = y * bytesPerLine + x * bytesPerPixel;
      const pixel = isBigEndian ? data.readUIntBE(at, bytesPerPixel) : data.readUIntLE(at, bytesPerPixel);
      for (const { shift, max } of channels) {
        rgb[out] = Math.round((((pixel >>> shift) & max) * 255) / max);
        out += 1;
      }
    }
  }
  return { width, height, rgb };
}

interface Header {
  width: number;
  height: number;
  bytesPerPixel: number;
  bytesPerLine: number;
  isBigEndian: boolean;
  /** Of red, green and blue. */
  masks: number[];
  dataAt: number;
}

/** The header is 25 numbers of 32 bits, then the window's name, then a table of colours. */
function readHeader(dump: Buffer): Header {
  if (dump.length < FIELDS * 4) throw new XwdError("the window dump has no header");
  const field = (index: number) => dump.readUInt32BE(index * 4);
  if (field(1) !== VERSION || field(2) !== Z_PIXMAP) throw new XwdError("the window dump is of a kind that is not read");
  const visual = field(13);
  const bits = field(11);
  const masks = [field(14), field(15), field(16)];
  if ((visual !== TRUE_COLOR && visual !== DIRECT_COLOR) || ![16, 24, 32].includes(bits) || masks.includes(0))
    throw new XwdError("only screens with true colours are read");
  return {
    width: field(4),
    height: field(5),
    isBigEndian: field(7) === 1,
    bytesPerPixel: bits / 8,
    bytesPerLine: field(12),
    masks,
    dataAt: field(0) + field(19) * COLOR_ENTRY_BYTES,
  };
}

/** Where a channel's bits are: 8 of 32, or 5 and 6 of 16. */
function channelOf(mask: number): { shift: number; max: number } {
  const shift = 31 - Math.clz32(mask & -mask);
  return { shift, max: mask >>> shift };
}
