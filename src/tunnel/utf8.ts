/** UTF-8 sizes of text without encoding it. Pure. A lone surrogate counts 3 bytes, as the encoders replace it by U+FFFD. */

/** Bytes of the text in UTF-8. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    if (unit < 0x800) {
      bytes += 1;
      continue;
    }
    bytes += 2;
    if (unit >= 0xd800 && unit < 0xdc00 && isLowSurrogate(text.charCodeAt(i + 1))) i += 1;
  }
  return bytes;
}

/** Whether the text has at most `max` bytes in UTF-8; counts only when its length leaves a doubt. */
export function fitsUtf8(text: string, max: number): boolean {
  if (text.length * 3 <= max) return true;
  return text.length <= max && utf8Length(text) <= max;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}
