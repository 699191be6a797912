/**
 * Foreign text made safe to show: ANSI sequences, control and bidirectional characters removed, length bounded
 * (design section 7, "Foreign text"). Pure.
 */
import { TEXT } from "../limits.ts";

// oxlint-disable-next-line no-control-regex -- control characters are what this removes
const ANSI = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
// oxlint-disable-next-line no-control-regex -- control characters are what this removes
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g;
const BIDI = /[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** One line of text, at most `max` characters; line breaks become ` | `. */
export function cleanText(text: string, max: number = TEXT.message): string {
  const flat = text
    .replaceAll(ANSI, "")
    .replaceAll(CONTROL, "")
    .replaceAll(BIDI, "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join(" | ");
  return flat.length <= max ? flat : `${flat.slice(0, max - 1)}…`;
}

/** Text of several lines, made safe as `cleanText` does but with its line breaks and indents; at most `max` characters. */
export function cleanBlock(text: string, max: number): string {
  const block = text.replaceAll(ANSI, "").replaceAll("\r\n", "\n").replaceAll("\t", "  ").replaceAll(CONTROL, "").replaceAll(BIDI, "");
  return block.length <= max ? block : `${block.slice(0, max - 1)}…`;
}
