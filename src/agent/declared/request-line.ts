/** The URL and body of a declared tool's request. Values in the URL stay inside their path segment or query value. Pure. */
import { ToolError } from "../upstreams/builtin.ts";
import type { DeclaredRequest } from "../types.ts";
import { ALL_ARGUMENTS, argumentText, fill, namesIn, piecesOf } from "./placeholders.ts";

type Values = Readonly<Record<string, unknown>>;

/** The URL for a call. Throws ToolError. */
export function requestUrl(template: string, values: Values): URL {
  const [path = "", ...query] = template.split("?");
  // Segment by segment, before a URL parser takes `..` for the way up.
  const segments = path.split("/").map((segment) => filledSegment(segment, values));
  const filled = query.map((part) => fill(part, (name) => encodeURIComponent(wellFormed(argumentText(values[name])))));
  return new URL([segments.join("/"), ...filled].join("?"));
}

function filledSegment(template: string, values: Values): string {
  const names = namesIn(template);
  if (names.length === 0) return template;
  const segment = fill(template, (name) => encodeURIComponent(wellFormed(argumentText(values[name]))));
  if (segment === "" || segment === "." || segment === "..")
    throw new ToolError(`The argument ${names.join(", ")} may not be ${JSON.stringify(segment)}.`);
  return segment;
}

/** `encodeURIComponent` throws at half a character. */
function wellFormed(text: string): string {
  return Buffer.from(text, "utf8").toString("utf8");
}

/** The body of a call with its media type; undefined for none. */
export function requestBody(request: DeclaredRequest, values: Values): { text: string; type: string } | undefined {
  if (request.body === "none") return undefined;
  const inUrl = new Set(namesIn(request.url));
  const rest = Object.fromEntries(Object.entries(values).filter(([name]) => !inUrl.has(name)));
  if (request.body === "json") return { text: JSON.stringify(rest), type: "application/json" };
  if (request.body === "form") {
    const pairs = Object.entries(rest).map(([name, value]): [string, string] => [name, argumentText(value)]);
    return { text: new URLSearchParams(pairs).toString(), type: "application/x-www-form-urlencoded" };
  }
  return { text: JSON.stringify(filledValue(request.body.template, values)), type: "application/json" };
}

/** A text that is one placeholder becomes the argument itself, of whatever type. */
function filledValue(template: unknown, values: Values): unknown {
  if (Array.isArray(template)) return template.map((item) => filledValue(item, values));
  if (typeof template === "object" && template !== null)
    return Object.fromEntries(Object.entries(template).map(([key, value]) => [key, filledValue(value, values)]));
  if (typeof template !== "string") return template;
  const [only, ...more] = piecesOf(template);
  if (only && "name" in only && more.length === 0) return only.name === ALL_ARGUMENTS ? values : values[only.name];
  return fill(template, (name) => argumentText(name === ALL_ARGUMENTS ? values : values[name]));
}
