/**
 * `Mcp-Param-*` against a tool's own schema (`x-mcp-header`, MCP 2026-07-28, Tools). The object checks with the schema
 * of its catalogue, the same it serves in `tools/list`. Pure; a schema is foreign data and may be anything.
 */
import { decodeHeaderValue } from "./header-value.ts";

/** One annotated parameter. */
export interface ParamRule {
  /** Suffix of the header in lower case: `room` for `Mcp-Param-Room`. */
  header: string;
  /** Property names from the root of the arguments. */
  path: readonly string[];
  type: "string" | "integer" | "boolean";
}

export interface ParamRules {
  rules: readonly ParamRule[];
  /** What is wrong with annotations: clients drop such a tool from their list, so its owner should hear of it. */
  problems: readonly string[];
}

const ANNOTATION = "x-mcp-header";
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Depth and nodes of a schema that are looked at; a tool's schema is bounded by the catalogue's own limit. */
const MAX_DEPTH = 64;
const MAX_NODES = 20_000;
const INTEGER = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Reads the annotations of an `inputSchema`. Properties are followed through `properties` only, as the revision demands. */
export function readParamRules(inputSchema: unknown): ParamRules {
  const rules: ParamRule[] = [];
  const problems: string[] = [];
  const seen = new Set<string>();
  let nodes = 0;

  function visit(node: unknown, path: readonly string[] | null, depth: number): void {
    nodes += 1;
    if (depth > MAX_DEPTH || nodes > MAX_NODES || typeof node !== "object" || node === null) return;
    if (Array.isArray(node)) {
      for (const item of node) visit(item, null, depth + 1);
      return;
    }
    const schema = node as Record<string, unknown>;
    if (Object.hasOwn(schema, ANNOTATION)) note(schema, path);
    for (const [key, value] of Object.entries(schema)) {
      if (key !== "properties" || !isRecord(value)) {
        visit(value, null, depth + 1);
        continue;
      }
      for (const [name, child] of Object.entries(value)) visit(child, path === null ? null : [...path, name], depth + 1);
    }
  }

  function note(schema: Record<string, unknown>, path: readonly string[] | null): void {
    const suffix = schema[ANNOTATION];
    const type = schema["type"];
    if (typeof suffix !== "string" || !TOKEN.test(suffix)) problems.push(`${ANNOTATION} is not an HTTP token`);
    else if (path === null || path.length === 0)
      problems.push(`${ANNOTATION} "${suffix}" is not on a property reached through "properties"`);
    else if (type !== "string" && type !== "integer" && type !== "boolean")
      problems.push(`${ANNOTATION} "${suffix}" is on a type that cannot be a header`);
    else if (seen.has(suffix.toLowerCase())) problems.push(`${ANNOTATION} "${suffix}" is used twice`);
    else {
      seen.add(suffix.toLowerCase());
      rules.push({ header: suffix.toLowerCase(), path, type });
    }
  }

  visit(inputSchema, [], 0);
  return { rules, problems };
}

/**
 * Compares the headers of one call (lower-case suffix → raw value) with its arguments. Returns what is wrong, for the
 * caller, or null. Headers no rule knows are somebody else's business and pass.
 */
export function checkParamHeaders(rules: readonly ParamRule[], args: unknown, headers: Readonly<Record<string, string>>): string | null {
  for (const rule of rules) {
    const value = valueAt(args, rule.path);
    const name = `Mcp-Param-${rule.header}`;
    const raw = Object.hasOwn(headers, rule.header) ? headers[rule.header] : undefined;
    if (value === undefined || value === null) {
      if (raw !== undefined) return `${name} is given, but the argument ${rule.path.join(".")} is not`;
      continue;
    }
    if (raw === undefined) return `${name} is missing for the argument ${rule.path.join(".")}`;
    const text = decodeHeaderValue(raw);
    if (text === null) return `${name} cannot be decoded`;
    if (!equals(value, text)) return `${name} does not match the argument ${rule.path.join(".")}`;
  }
  return null;
}

function equals(value: unknown, text: string): boolean {
  if (typeof value === "string") return value === text;
  if (typeof value === "boolean") return text === String(value);
  if (typeof value === "number") return INTEGER.test(text) && Number(text) === value;
  return false;
}

function valueAt(root: unknown, path: readonly string[]): unknown {
  let at = root;
  for (const name of path) {
    if (!isRecord(at) || !Object.hasOwn(at, name)) return undefined;
    at = at[name];
  }
  return at;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
