/** Pictures of the screen: read, reduced and written. */
import { decode, encode } from "fast-png";
import { describe, expect, test } from "vitest";
import { reduce, type Pixels } from "../../src/agent/tools/pixels.ts";
import { pngSize, readPng, writePng } from "../../src/agent/tools/png.ts";
import { readXwd, XwdError, xwdSize } from "../../src/agent/tools/xwd.ts";

/** A gradient with noise, so that no filter is trivially right. */
function picture(width: number, height: number): Pixels {
  const rgb = Uint8Array.from({ length: width * height * 3 }, (_, index) => (index * 7 + ((index * index) % 13)) & 0xff);
  return { width, height, rgb };
}

describe("a PNG", () => {
  test.each([
    [1, 1],
    [3, 2],
    [64, 37],
  ])("of %i × %i is written so that others read the same pixels", async (width, height) => {
    const source = picture(width, height);
    const png = await writePng(source);
    const other = decode(png, { checkCrc: true });
    expect({ width: other.width, height: other.height, channels: other.channels, data: [...other.data] }).toEqual({
      width,
      height,
      channels: 3,
      data: [...source.rgb],
    });
    expect(pngSize(png)).toEqual({ width, height });
    expect([...readPng(png).rgb]).toEqual([...source.rgb]);
  });

  test("is read in every form that capture programs write", () => {
    const rgba = encode({ width: 1, height: 1, channels: 4, data: Uint8Array.of(1, 2, 3, 128) });
    const gray = encode({ width: 1, height: 1, channels: 1, data: Uint8Array.of(9) });
    const deep = encode({ width: 1, height: 1, channels: 3, depth: 16, data: Uint16Array.of(0x0102, 0x7fff, 0xff00) });
    expect([rgba, gray, deep].map((png) => [...readPng(png).rgb])).toEqual([
      [1, 2, 3],
      [9, 9, 9],
      [1, 0x7f, 0xff],
    ]);
  });

  test("that is none has no size", () => {
    expect(pngSize(Buffer.from("GIF89a"))).toBeUndefined();
  });
});

describe("a reduced picture", () => {
  test("keeps its shape, and each pixel is the mean of those it stands for", () => {
    const source = {
      width: 4,
      height: 2,
      rgb: Uint8Array.from([0, 10, 20, 0, 10, 20, 90, 0, 0, 90, 0, 0, 4, 10, 20, 4, 10, 20, 90, 0, 0, 90, 0, 100]),
    };
    expect(reduce(source, 2)).toEqual({ width: 2, height: 1, rgb: Uint8Array.of(2, 10, 20, 90, 0, 25) });
    expect(reduce(picture(1_000, 10), 64)).toMatchObject({ width: 64, height: 1 });
  });

  test("is never enlarged", () => {
    const source = picture(3, 2);
    expect(reduce(source, 100)).toBe(source);
  });
});

describe("a window dump", () => {
  /** A dump as `xwd` writes it: header, a name of four bytes, one colour, then the rows. */
  function dump(over: Partial<Record<number, number>>, rows: Buffer): Buffer {
    const fields = {
      0: 104,
      1: 7,
      2: 2,
      3: 24,
      4: 2,
      5: 1,
      7: 0,
      11: 32,
      12: 8,
      13: 4,
      14: 0xff0000,
      15: 0xff00,
      16: 0xff,
      19: 1,
      ...over,
    };
    const head = Buffer.alloc(104 + 12);
    for (const [index, value] of Object.entries(fields)) head.writeUInt32BE(value ?? 0, Number(index) * 4);
    return Buffer.concat([head, rows]);
  }

  test("is read in both byte orders, and in 16 bits", () => {
    const little = dump({}, Buffer.from([3, 2, 1, 0, 6, 5, 4, 0]));
    expect(xwdSize(little)).toEqual({ width: 2, height: 1 });
    expect([...readXwd(little).rgb]).toEqual([1, 2, 3, 4, 5, 6]);
    expect([...readXwd(dump({ 7: 1 }, Buffer.from([0, 1, 2, 3, 0, 4, 5, 6]))).rgb]).toEqual([1, 2, 3, 4, 5, 6]);
    const small = dump({ 11: 16, 12: 4, 14: 0xf800, 15: 0x07e0, 16: 0x001f }, Buffer.from([0x00, 0xf8, 0xe0, 0x07]));
    expect([...readXwd(small).rgb]).toEqual([255, 0, 0, 0, 255, 0]);
  });

  test.each([
    ["cut", dump({}, Buffer.alloc(4))],
    ["of another version", dump({ 1: 6 }, Buffer.alloc(8))],
    ["with a palette", dump({ 13: 3 }, Buffer.alloc(8))],
    ["empty", Buffer.alloc(0)],
  ])("that is %s is refused", (_, bytes) => {
    expect(() => readXwd(bytes)).toThrow(XwdError);
  });
});
