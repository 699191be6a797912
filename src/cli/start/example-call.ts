/** One complete modern `tools/call`: made by `start` itself, and printed for the person to paste. */
import { META, MODERN_REVISION } from "../../agent/upstreams/revisions.ts";

/** A request, ready to send or to show. */
export interface ExampleCall {
  url: string;
  headers: Record<string, string>;
  body: string;
}

/** A call of a tool with every header and `_meta` key that MCP 2026-07-28 demands (Streamable HTTP, `_meta`). */
export function exampleCall(mcpUrl: string, token: string, tool: string, args: Record<string, unknown>): ExampleCall {
  const meta = {
    [META.protocolVersion]: MODERN_REVISION,
    [META.clientInfo]: { name: "longline-start", version: "1" },
    [META.clientCapabilities]: {},
  };
  return {
    url: mcpUrl,
    headers: {
      Authorization: `Bearer ${token}`,
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": MODERN_REVISION,
      "Mcp-Method": "tools/call",
      "Mcp-Name": tool,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: tool, arguments: args, _meta: meta } }),
  };
}

/** The call as one line for a POSIX shell. */
export function curlLine(call: ExampleCall): string {
  const headers = Object.entries(call.headers).map(([name, value]) => `-H ${shellQuote(`${name}: ${value}`)}`);
  return ["curl -sS", shellQuote(call.url), ...headers, "-d", shellQuote(call.body)].join(" ");
}

/** The JSON-RPC response in an answer: the body itself, or the last data line of an event stream. */
export function readAnswer(contentType: string | null, text: string): unknown {
  if (contentType?.startsWith("text/event-stream") !== true) return JSON.parse(text);
  const data = text.split(/\r?\n/).filter((line) => line.startsWith("data:"));
  return JSON.parse((data.at(-1) ?? "").slice("data:".length));
}

function shellQuote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
