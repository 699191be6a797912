/** JSON-RPC as the reference devices read and write it. */

export type Json = Record<string, unknown>;

/** `_meta` keys that a request of the stateless revision must carry (MCP 2026-07-28). */
export const META = {
  protocolVersion: "io.modelcontextprotocol/protocolVersion",
  clientCapabilities: "io.modelcontextprotocol/clientCapabilities",
  serverInfo: "io.modelcontextprotocol/serverInfo",
} as const;

export const MODERN = "2026-07-28";

/** One message, or undefined for what is no JSON object. */
export function readObject(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A member that is an object, else an empty one. */
export function objectAt(value: unknown, key: string): Json {
  const member = isObject(value) ? value[key] : undefined;
  return isObject(member) ? member : {};
}

/** The value of `Mcp-Name` as the body has it: plain, or UTF-8 in the Base64 form. */
export function decodeName(value: string): string {
  const encoded = /^=\?base64\?(.*)\?=$/.exec(value)?.[1];
  return encoded === undefined ? value : Buffer.from(encoded, "base64").toString("utf8");
}

export function text(value: unknown): Json {
  return { type: "text", text: typeof value === "string" ? value : JSON.stringify(value) };
}
