/** Ready-made entries for MCP clients. Each holds the token, which is what the client sends. */

/** What a client needs to reach a device. */
export interface ClientAccess {
  /** The name the client shows. */
  name: string;
  mcpUrl: string;
  token: string;
}

/** One client: how a person recognises it, and the command or file content to use. */
export interface ClientEntry {
  title: string;
  text: string;
}

/** Entries for the clients that can send a header of their own to a loopback address. */
export function clientEntries({ name, mcpUrl, token }: ClientAccess): ClientEntry[] {
  const headers = { Authorization: `Bearer ${token}` };
  return [
    {
      title: "Claude Code (run this)",
      text: `claude mcp add --transport http ${name} ${mcpUrl} --header "Authorization: Bearer ${token}"`,
    },
    { title: "VS Code (.vscode/mcp.json)", text: json({ servers: { [name]: { type: "http", url: mcpUrl, headers } } }) },
    { title: "Cursor (.cursor/mcp.json)", text: json({ mcpServers: { [name]: { url: mcpUrl, headers } } }) },
    { title: "Others that read mcpServers", text: json({ mcpServers: { [name]: { type: "http", url: mcpUrl, headers } } }) },
  ];
}

/** Which clients cannot come to a loopback address, and what to do about it. */
export function reachNote(url: string): string {
  const { hostname } = new URL(url);
  if (hostname !== "127.0.0.1" && hostname !== "localhost" && hostname !== "[::1]") return "";
  return [
    "claude.ai and ChatGPT call from their own servers and cannot reach 127.0.0.1; nor can other machines.",
    "For them, give the relay a public https address: deploy it to your Cloudflare account, or put a TLS proxy in",
    "front of `longline serve` and name its address with --origin https://relay.example.",
  ].join("\n");
}

function json(value: unknown): string {
  return JSON.stringify(value, undefined, 2);
}
