/** What the schema of `[tools.NAME]` cannot say: placeholders, places for them, and schemas that are schemas. Pure. */
import { ALL_ARGUMENTS, namesIn, namesInValue } from "../declared/placeholders.ts";
import { propertiesOf, schemaCheck } from "../declared/schema-check.ts";
import { closest } from "./closest.ts";
import type { ToolSection } from "./declared-section.ts";
import type { Finding } from "./mistakes.ts";
import { isAddress } from "./names.ts";
import { checkShells } from "./shell-guard.ts";
import type { Path } from "./toml.ts";
import { checkEnvironment } from "./upstream-section.ts";

/** Everything wrong with one tool; paths are relative to it. */
export function checkTool(tool: ToolSection): Finding[] {
  return [
    ...checkShape(tool),
    ...checkSchemas(tool),
    ...checkPlaces(tool),
    ...checkResult(tool),
    ...checkEnvironment(tool.env),
    ...checkShells(tool),
  ];
}

function checkShape(tool: ToolSection): Finding[] {
  const findings: Finding[] = [];
  if ((tool.command === undefined) === (tool.request === undefined)) findings.push({ path: [], text: "needs either command or request" });
  for (const key of ["stdin", "env", "cwd"] as const)
    if (tool[key] !== undefined && tool.command === undefined) findings.push({ path: [key], text: "goes with command" });
  if (tool.command?.[0] === "") findings.push({ path: ["command", 0], text: "names no program" });
  return findings;
}

function checkSchemas(tool: ToolSection): Finding[] {
  const findings: Finding[] = [];
  if (tool.inputSchema["type"] !== "object") findings.push({ path: ["inputSchema"], text: 'must have type = "object"' });
  for (const key of ["inputSchema", "outputSchema"] as const) {
    const schema = tool[key];
    if (schema && !isSchema(schema)) findings.push({ path: [key], text: "is not a JSON Schema" });
  }
  return findings;
}

function isSchema(schema: Record<string, unknown>): boolean {
  try {
    schemaCheck(schema);
    return true;
  } catch {
    return false; // The validator's own message may quote the schema; the line says enough.
  }
}

/** Where placeholders stand, and whether each names an argument that is always there. */
function checkPlaces(tool: ToolSection): Finding[] {
  const findings: Finding[] = [];
  const names = (path: Path, text: string) => findings.push(...namesIn(text).flatMap((name) => checkName(tool, path, name)));
  for (const [index, part] of (tool.command ?? []).entries()) {
    if (index > 0) names(["command", index], part);
    else if (namesIn(part).length > 0)
      findings.push({ path: ["command", 0], text: "may hold no placeholder: a caller does not choose the program" });
  }
  if (tool.stdin !== undefined) names(["stdin"], tool.stdin);
  if (!tool.request) return findings;
  const { url, body, method } = tool.request;
  findings.push(...checkUrl(url));
  names(["request", "url"], url);
  if (body !== undefined && body !== "none" && method === "GET") findings.push({ path: ["request", "body"], text: "does not go with GET" });
  if (typeof body === "object")
    for (const name of namesInValue(body)) if (name !== ALL_ARGUMENTS) findings.push(...checkName(tool, ["request", "body"], name));
  return findings;
}

function checkName(tool: ToolSection, path: Path, name: string): Finding[] {
  const properties = propertiesOf(tool.inputSchema);
  if (!Object.hasOwn(properties, name)) {
    const meant = closest(name, Object.keys(properties));
    return [{ path, text: `{${name}} is no property of inputSchema${meant === undefined ? "" : `; did you mean {${meant}}?`}` }];
  }
  const { required } = tool.inputSchema;
  const isSure = (Array.isArray(required) && required.includes(name)) || Object.hasOwn(properties[name] ?? {}, "default");
  return isSure ? [] : [{ path, text: `{${name}} may be absent: put it into "required" of inputSchema, or give it a default` }];
}

/** The server is the configuration's choice: placeholders stand behind it. */
function checkUrl(url: string): Finding[] {
  const path = ["request", "url"];
  const server = /^[a-z]+:\/\/[^/?#]*/i.exec(url)?.[0] ?? "";
  if (namesIn(server).length > 0 || server.includes("{")) return [{ path, text: "may hold placeholders in its path and query only" }];
  const filled = url.replaceAll(/\{[^}]*\}/g, "x");
  if (!isAddress(filled, ["http:", "https:"])) return [{ path, text: "must look like http://10.0.0.7/tap/{x}, without credentials" }];
  if (url.includes("#")) return [{ path, text: "may hold no fragment: servers do not get it" }];
  return [];
}

function checkResult({ result, outputSchema, command }: ToolSection): Finding[] {
  const findings: Finding[] = [];
  if (outputSchema && result?.kind !== undefined && result.kind !== "structured")
    findings.push({ path: ["result", "kind"], text: 'must be "structured" where there is an outputSchema' });
  if (result?.errorTextPath !== undefined && result.errorPath === undefined)
    findings.push({ path: ["result", "errorTextPath"], text: "goes with errorPath" });
  if (result?.mimeType !== undefined && result.kind !== "image")
    findings.push({ path: ["result", "mimeType"], text: 'goes with kind = "image"' });
  if (result?.kind === "image" && result.mimeType === undefined && command !== undefined)
    findings.push({ path: ["result"], text: "needs mimeType: a command does not say what its image is" });
  return findings;
}
