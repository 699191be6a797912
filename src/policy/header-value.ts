/**
 * The value form of mirrored headers (`Mcp-Name`, `Mcp-Param-*`): plain visible text, or Base64 of UTF-8 between
 * two literal markers (MCP 2026-07-28, Streamable HTTP, "Value encoding"). Strict, because a forgiving decoder would
 * let two readers of one header see two values. Pure.
 */

const PREFIX = "=?base64?";
const SUFFIX = "?=";
// Standard alphabet with full padding; `atob` alone forgives a missing padding.
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const LEGAL = /^[\t\x20-\x7E]*$/;
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Removes optional white space around a field value (RFC 9110 §5.5). */
export function trimOws(value: string): string {
  return value.replace(/^[ \t]+|[ \t]+$/g, "");
}

/** True when a field value holds only tab and 0x20–0x7E. */
export function isLegalHeaderValue(value: string): boolean {
  return LEGAL.test(value);
}

/** What a mirrored header stands for, or null when it holds illegal characters or undecodable Base64. Half a marker is literal text. */
export function decodeHeaderValue(raw: string): string | null {
  const value = trimOws(raw);
  if (!isLegalHeaderValue(value)) return null;
  if (value.length < PREFIX.length + SUFFIX.length || !value.startsWith(PREFIX) || !value.endsWith(SUFFIX)) return value;
  const encoded = value.slice(PREFIX.length, -SUFFIX.length);
  if (!BASE64.test(encoded)) return null;
  try {
    return decoder.decode(Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0)));
  } catch {
    return null; // not UTF-8
  }
}
