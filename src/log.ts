/**
 * The Worker's log: one line of JSON per event. What goes out is redacted here and nowhere else: members with a
 * secret's name, and text that looks like a token or a key, wherever it stands.
 */
import { API } from "./limits.ts";

export type LogLevel = "info" | "warn" | "error";
export type LogFields = Readonly<Record<string, unknown>>;

const REDACTED = "[redacted]";
const SECRET_NAMES = /^(authorization|cookie|set-cookie|password|.*token|.*secret|.*(?<!public)key|.*jwk)$/i;
// Device keys, owner tokens, sessions, invitations and pairing codes by prefix; JWTs and sealed values by their base64url JSON header; any bearer credential.
const SECRET_TEXT = /ll[kosip]_[A-Za-z0-9_-]+|eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*|(?<=bearer\s)[^\s"']+/gi;
const MAX_DEPTH = 4;

/** A copy of `value` that is safe to print: secrets replaced, text bounded, depth bounded. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return value.replace(SECRET_TEXT, REDACTED).slice(0, API.logValueLength);
  if (typeof value !== "object" || value === null) return typeof value === "bigint" ? String(value) : value;
  if (depth >= MAX_DEPTH) return "[deep]";
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  if (value instanceof Error) return redact(describeError(value), depth + 1);
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, SECRET_NAMES.test(name) ? REDACTED : redact(item, depth + 1)]),
  );
}

/** An unknown error for the log: its message is for the operator only and never becomes part of an answer. */
export function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { name: typeof error };
  const frames = (error.stack ?? "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line.startsWith("at "));
  return { name: error.name, message: error.message, at: frames.slice(0, 5) };
}

/** Writes one event. `event` is a constant, dotted name; everything variable belongs into `fields`. */
export function log(level: LogLevel, event: string, fields: LogFields = {}): void {
  const line = JSON.stringify({ time: new Date().toISOString(), level, event, ...(redact(fields) as object) });
  // oxlint-disable-next-line no-console -- the one place of the Worker that writes; the platform collects the console.
  console.log(line);
}
