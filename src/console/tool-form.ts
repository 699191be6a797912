/**
 * From a tool's input schema to fields, and from a posted form to arguments. A schema is foreign data and may be anything:
 * what has no field of its own is typed as JSON. Pure.
 */
import { cleanText } from "../policy/clean-text.ts";
import { TEXT } from "../limits.ts";

/** One field; `name` is the property's own name. */
export interface ToolField {
  name: string;
  title: string;
  description: string | undefined;
  kind: "text" | "number" | "integer" | "boolean" | "choice" | "json";
  required: boolean;
  /** What it begins with: the schema's default, or what was typed. */
  value: string;
  options: readonly string[];
}

/** The name of the form field that belongs to a property, and of the one that takes all arguments as JSON. */
export const FIELD_PREFIX = "arg:";
export const WHOLE_FIELD = "arguments";

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function kindOf(schema: Record<string, unknown>): ToolField["kind"] {
  const { type } = schema;
  if (Array.isArray(schema["enum"]) && schema["enum"].every((item) => typeof item === "string")) return "choice";
  if (type === "string") return "text";
  return type === "number" || type === "integer" || type === "boolean" ? type : "json";
}

function shown(value: unknown, kind: ToolField["kind"]): string {
  if (value === undefined) return "";
  return typeof value === "string" && kind !== "json" ? value : JSON.stringify(value);
}

/** The fields of an input schema in its own order; null when all arguments have to be typed as one JSON object. */
export function fieldsOf(inputSchema: unknown): ToolField[] | null {
  if (!isRecord(inputSchema)) return null;
  const { properties = {}, required } = inputSchema;
  if (!isRecord(properties) || ["oneOf", "anyOf", "allOf", "$ref"].some((word) => Object.hasOwn(inputSchema, word))) return null;
  const needed = new Set(Array.isArray(required) ? required : []);
  return Object.entries(properties).map(([name, property]) => {
    const schema = isRecord(property) ? property : {};
    const kind = kindOf(schema);
    const { title, description } = schema;
    return {
      name,
      title: cleanText(typeof title === "string" && title !== "" ? title : name, TEXT.label),
      description: typeof description === "string" ? cleanText(description) : undefined,
      kind,
      required: needed.has(name),
      value: shown(schema["default"], kind),
      options: kind === "choice" ? (schema["enum"] as string[]) : [],
    };
  });
}

/** The arguments that were typed, or what is wrong with them. An empty field that is not required is left out. */
export function readArguments(
  fields: readonly ToolField[] | null,
  form: URLSearchParams,
): { ok: true; args: Record<string, unknown> } | { ok: false; problem: string } {
  if (fields === null) return readWhole(form.get(WHOLE_FIELD) ?? "");
  const entries: [string, unknown][] = [];
  for (const field of fields) {
    const text = form.get(`${FIELD_PREFIX}${field.name}`) ?? "";
    if (text === "" && !(field.required && field.kind === "text")) {
      if (field.required) return { ok: false, problem: `“${field.title}” is required.` };
      continue;
    }
    const value = readValue(field, text);
    if (value === undefined) return { ok: false, problem: `“${field.title}” ${WRONG[field.kind]}.` };
    entries.push([field.name, value]);
  }
  return { ok: true, args: Object.fromEntries(entries) };
}

const WRONG: Readonly<Record<ToolField["kind"], string>> = {
  text: "is not a text",
  number: "must be a number",
  integer: "must be a whole number",
  boolean: "must be true or false",
  choice: "must be one of the choices",
  json: "must be JSON",
};

/** The value of a field, or undefined when the text is none. */
function readValue({ kind, options }: ToolField, text: string): unknown {
  switch (kind) {
    case "text":
      return text;
    case "choice":
      return options.includes(text) ? text : undefined;
    case "boolean":
      return text === "true" ? true : text === "false" ? false : undefined;
    case "number":
    case "integer": {
      const value = Number(text);
      const fits = kind === "integer" ? Number.isSafeInteger(value) : Number.isFinite(value);
      return fits && text.trim() !== "" ? value : undefined;
    }
    case "json":
      break;
  }
  return parseJson(text);
}

function readWhole(text: string): ReturnType<typeof readArguments> {
  const value = text.trim() === "" ? {} : parseJson(text);
  return isRecord(value) ? { ok: true, args: value } : { ok: false, problem: "The arguments must be one JSON object." };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // The parser's own message quotes the text; the page says what is expected instead.
  }
}
