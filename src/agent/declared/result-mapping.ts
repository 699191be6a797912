/** What of a program's output or a server's answer becomes the result of a declared tool. Pure. */
import { DECLARED } from "../../limits.ts";
import { cleanText } from "../clean-text.ts";
import type { BuiltinResult, ResultMapping } from "../types.ts";
import { ToolError } from "../upstreams/builtin.ts";
import { argumentText } from "./placeholders.ts";
import { parsed, valueAt } from "./json-pointer.ts";

/** Output as it came, and its media type where somebody said one. */
export interface Output {
  bytes: Buffer;
  type: string | undefined;
}

const IMAGE = /^image\/[a-z0-9.+-]+$/i;
const DATA_URL = /^data:(image\/[a-z0-9.+-]+);base64,/i;
const BASE64 = /^[A-Za-z0-9+/\s]+={0,2}\s*$/;

/** The result. Throws ToolError when the output is not what the mapping says. */
export function mapResult(output: Output, mapping: ResultMapping): BuiltinResult {
  const failed = errorIn(output, mapping);
  if (failed !== undefined) return { content: [{ type: "text", text: failed }], isError: true };
  switch (mapping.kind) {
    case "text":
      return { content: [{ type: "text", text: argumentText(mapping.path === undefined ? textOf(output) : place(output, mapping.path)) }] };
    case "image":
      return { content: [imageOf(output, mapping)] };
    case "structured":
      return structured(output, mapping);
    default:
      return mapping.kind satisfies never;
  }
}

/** An answer that says by itself that it failed, in words for the caller. */
function errorIn(output: Output, { errorPath, errorTextPath }: ResultMapping): string | undefined {
  if (errorPath === undefined) return undefined;
  const value = valueAt(json(output), errorPath);
  if (value === undefined || value === null || value === false || value === 0 || value === "") return undefined;
  const text = errorTextPath === undefined ? value : valueAt(json(output), errorTextPath);
  return cleanText(argumentText(text ?? "The tool failed."), DECLARED.errorLength);
}

function structured(output: Output, { path }: ResultMapping): BuiltinResult {
  const value = path === undefined ? json(output) : place(output, path);
  const content = typeof value === "string" ? parsed(value) : value;
  return { content: [{ type: "text", text: JSON.stringify(content) }], structuredContent: content };
}

function imageOf(output: Output, { path, mimeType }: ResultMapping): Record<string, unknown> {
  if (path === undefined) {
    const type = mimeType ?? output.type ?? "";
    if (!IMAGE.test(type) || output.bytes.length === 0) throw new ToolError("The answer is not an image.");
    return { type: "image", data: output.bytes.toString("base64"), mimeType: type };
  }
  const text = place(output, path);
  const url = typeof text === "string" ? DATA_URL.exec(text) : null;
  const data = typeof text === "string" ? text.slice(url?.[0].length ?? 0) : "";
  const type = mimeType ?? url?.[1] ?? "";
  if (!BASE64.test(data) || !IMAGE.test(type)) throw new ToolError("The answer holds no image where the configuration says.");
  return { type: "image", data: data.replaceAll(/\s/g, ""), mimeType: type };
}

function place(output: Output, path: string): unknown {
  const value = valueAt(json(output), path);
  if (value === undefined) throw new ToolError(`The answer has nothing at ${path}.`);
  return value;
}

function json(output: Output): unknown {
  try {
    return JSON.parse(textOf(output));
  } catch {
    throw new ToolError("The answer is not JSON.");
  }
}

function textOf({ bytes }: Output): string {
  return new TextDecoder().decode(bytes);
}
