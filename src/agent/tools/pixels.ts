/** A picture as 8-bit RGB, and its reduction. Pure. */

export interface Pixels {
  width: number;
  height: number;
  /** Three bytes a pixel, row by row. */
  rgb: Uint8Array;
}

/** The picture with its longer side at most `side`, each pixel the mean of those it stands for; never enlarged. */
export function reduce(picture: Pixels, side: number): Pixels {
  const longer = Math.max(picture.width, picture.height);
  if (longer <= side) return picture;
  const width = Math.max(1, Math.round((picture.width * side) / longer));
  const height = Math.max(1, Math.round((picture.height * side) / longer));
  const rgb = new Uint8Array(width * height * 3);
  const columns = edges(picture.width, width);
  const rows = edges(picture.height, height);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      mean(picture, rgb, (y * width + x) * 3, {
        left: at(columns, x),
        right: at(columns, x + 1),
        top: at(rows, y),
        bottom: at(rows, y + 1),
      });
    }
  }
  return { width, height, rgb };
}

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

function mean(picture: Pixels, into: Uint8Array, offset: number, box: Box): void {
  let [red, green, blue] = [0, 0, 0];
  for (let y = box.top; y < box.bottom; y += 1) {
    const end = (y * picture.width + box.right) * 3;
    for (let index = (y * picture.width + box.left) * 3; index < end; index += 3) {
      red += at(picture.rgb, index);
      green += at(picture.rgb, index + 1);
      blue += at(picture.rgb, index + 2);
    }
  }
  const count = (box.right - box.left) * (box.bottom - box.top);
  into[offset] = Math.round(red / count);
  into[offset + 1] = Math.round(green / count);
  into[offset + 2] = Math.round(blue / count);
}

/** Where each of `to` parts of `from` pixels begins, and where the last ends; each has at least one. */
function edges(from: number, to: number): Uint32Array {
  return Uint32Array.from({ length: to + 1 }, (_, index) => Math.floor((index * from) / to));
}

function at(values: Uint8Array | Uint32Array, index: number): number {
  return values[index] ?? 0;
}
