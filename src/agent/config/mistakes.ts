/** Mistakes of a configuration file: where each stands, and what to do about it. Never a value of the file, which may be secret. */
import { z } from "zod";
import { CONFIG } from "../../limits.ts";
import { cleanText } from "../clean-text.ts";
import { closest } from "./closest.ts";
import type { Path, TomlDocument } from "./toml.ts";

/** Something wrong at a path. */
export interface Finding {
  path: Path;
  text: string;
}

/** A finding with its line, from 1. */
export interface Mistake extends Finding {
  line: number;
}

/** The file cannot be used: `message` says it in a sentence, `lines` has a line for each mistake. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly mistakes: readonly Mistake[];
  readonly lines: readonly string[];
  constructor(file: string, mistakes: readonly Mistake[]) {
    super(`${file} has ${mistakes.length === 1 ? "a mistake" : `${mistakes.length} mistakes`}.`);
    this.mistakes = mistakes;
    const more = mistakes.length > CONFIG.mistakes ? [`${file}: and ${mistakes.length - CONFIG.mistakes} more`] : [];
    this.lines = [...mistakes.slice(0, CONFIG.mistakes).map((mistake) => lineOf(file, mistake)), ...more];
  }
}

function lineOf(file: string, { line, path, text }: Mistake): string {
  return cleanText(`${file}:${line}: ${path.length === 0 ? "" : `${pathText(path)}: `}${text}`);
}

/** A path as a person counts: the first of a list is [1]. */
function pathText(path: Path): string {
  return path.map((part, index) => (typeof part === "number" ? `[${part + 1}]` : `${index === 0 ? "" : "."}${part}`)).join("");
}

/** Findings with their lines, in the order of the file. */
export function located(document: Pick<TomlDocument, "lineOf">, findings: readonly Finding[]): Mistake[] {
  return findings.map((finding) => ({ ...finding, line: document.lineOf(finding.path) })).toSorted((a, b) => a.line - b.line);
}

/** Reads a value by a schema: the value, or what is wrong with it. */
export function readSection<T>(
  schema: z.ZodType<T>,
  value: unknown,
  at: Path,
): { ok: true; value: T } | { ok: false; findings: Finding[] } {
  const read = schema.safeParse(value, { error: (issue) => issueText(issue) });
  if (read.success) return { ok: true, value: read.data };
  return { ok: false, findings: read.error.issues.flatMap((issue) => findingsOf(schema, issue, at)) };
}

function findingsOf(schema: z.ZodType, issue: z.core.$ZodIssue, at: Path): Finding[] {
  const inner = issue.path.map((part) => (typeof part === "number" ? part : String(part)));
  if (issue.code !== "unrecognized_keys") return [{ path: [...at, ...inner], text: issue.message }];
  const known = keysAt(schema, inner);
  return issue.keys.map((key) => unknownKey([...at, ...inner, key], known));
}

/** A key that nobody reads. */
export function unknownKey(path: Path, known: readonly string[]): Finding {
  const meant = closest(String(path.at(-1)), known);
  return { path, text: meant === undefined ? `is not known; known here: ${known.join(", ")}` : `is not known; did you mean ${meant}?` };
}

const TYPES: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a table",
  record: "a table",
};

function issueText(issue: z.core.$ZodRawIssue): string {
  if (issue.input === undefined) return "is missing";
  if (issue.code === "invalid_type") return `must be ${TYPES[issue.expected] ?? issue.expected}`;
  if (issue.code === "invalid_value") return `must be one of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`;
  if (issue.code === "too_small")
    return `must be ${issue.inclusive === false ? "more than" : "at least"} ${issue.minimum}${unitOf(issue.origin)}`;
  if (issue.code === "too_big")
    return `must be ${issue.inclusive === false ? "less than" : "at most"} ${issue.maximum}${unitOf(issue.origin)}`;
  return "has a form that does not fit";
}

function unitOf(origin: string): string {
  if (origin === "string") return " characters long";
  return origin === "array" ? " items long" : "";
}

/** The keys that a schema knows at a path. */
function keysAt(schema: z.ZodType, path: Path): string[] {
  let at: z.core.$ZodType | undefined = schema;
  for (const key of path) at = at && childOf(unwrapped(at), key);
  const inner = at && unwrapped(at);
  return inner instanceof z.ZodObject ? Object.keys(inner.shape) : [];
}

function childOf(schema: z.core.$ZodType, key: string | number): z.core.$ZodType | undefined {
  if (schema instanceof z.ZodObject) return (schema.shape as Record<string, z.core.$ZodType>)[String(key)];
  if (schema instanceof z.ZodRecord) return schema.valueType;
  return schema instanceof z.ZodArray ? schema.element : undefined;
}

function unwrapped(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) return unwrapped(schema.def.innerType);
  return schema;
}
