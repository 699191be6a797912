/**
 * Ready-made entries for MCP clients, for the console and the command line alike: what to run or paste, and whether the
 * client can come to the relay's address at all. Pure. Each text holds the token, which is what the client sends.
 */

/** What a client needs to reach a device. */
export interface ClientAccess {
  /** The name the client shows. */
  name: string;
  mcpUrl: string;
  token: string;
}

/** One client: how a person recognises it, and the command or file content to use. */
export interface ClientEntry {
  id: string;
  title: string;
  /** Where the text goes. */
  where: string;
  text: string;
  /** `own`: sends from the person's machine; `cloud`: its maker's servers call, with OAuth and without a token. */
  calls: "own" | "cloud";
  /** Why it cannot come to this address, with what to do; undefined when it can. */
  unreachable?: string;
}

/** Who can come to an address: this machine alone, a private network, anybody but without TLS, anybody. */
export type Reach = "machine" | "network" | "plain" | "public";

const PRIVATE_HOST =
  /^(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.)|\.(?:local|lan|internal|home\.arpa)$/;
const PUBLIC_NEEDED =
  "It calls from its maker's servers and needs a public https address: deploy the relay, or put a TLS proxy in front of it and name its address with --origin.";

/** How far a URL reaches. */
export function reachOf(url: string): Reach {
  const { hostname, protocol } = new URL(url);
  if (hostname === "localhost" || hostname === "[::1]" || hostname.startsWith("127.")) return "machine";
  if (PRIVATE_HOST.test(hostname) || hostname.startsWith("[f") || !hostname.includes(".")) return "network";
  return protocol === "https:" ? "public" : "plain";
}

/** Entries for the clients people use most; those that can come to the address first. */
export function clientEntries({ name, mcpUrl, token }: ClientAccess): ClientEntry[] {
  const authorization = `Bearer ${token}`;
  const headers = { Authorization: authorization };
  const cloud = reachOf(mcpUrl) === "public" ? {} : { unreachable: PUBLIC_NEEDED };
  const own = { calls: "own" as const };
  const entries: ClientEntry[] = [
    {
      ...own,
      id: "claude-code",
      title: "Claude Code",
      where: "Run this",
      text: `claude mcp add --transport http ${name} ${mcpUrl} --header "Authorization: ${authorization}"`,
    },
    {
      ...own,
      id: "vscode",
      title: "VS Code",
      where: ".vscode/mcp.json",
      text: json({ servers: { [name]: { type: "http", url: mcpUrl, headers } } }),
    },
    { ...own, id: "cursor", title: "Cursor", where: ".cursor/mcp.json", text: json({ mcpServers: { [name]: { url: mcpUrl, headers } } }) },
    {
      ...own,
      id: "codex",
      title: "Codex",
      where: "~/.codex/config.toml",
      text: `[mcp_servers.${name}]\nurl = ${JSON.stringify(mcpUrl)}\nhttp_headers = { Authorization = ${JSON.stringify(authorization)} }`,
    },
    {
      ...own,
      id: "gemini",
      title: "Gemini CLI",
      where: "Run this",
      text: `gemini mcp add --transport http --header "Authorization: ${authorization}" ${name} ${mcpUrl}`,
    },
    {
      ...own,
      id: "json",
      title: "Others that read mcpServers",
      where: "mcpServers",
      text: json({ mcpServers: { [name]: { type: "http", url: mcpUrl, headers } } }),
    },
    {
      ...cloud,
      calls: "cloud",
      id: "claude",
      title: "Claude Desktop and claude.ai",
      where: "Settings → Connectors → Add custom connector, then sign in here",
      text: mcpUrl,
    },
    {
      ...cloud,
      calls: "cloud",
      id: "chatgpt",
      title: "ChatGPT",
      where: "Settings → Connectors → Create, with OAuth, then sign in here",
      text: mcpUrl,
    },
  ];
  return entries;
}

/** Which clients cannot come to a loopback address, and what to do about it. */
export function reachNote(url: string): string {
  if (reachOf(url) !== "machine") return "";
  return [
    "claude.ai and ChatGPT call from their own servers and cannot reach 127.0.0.1; nor can other machines.",
    "For them, give the relay a public https address: deploy it to your Cloudflare account, or put a TLS proxy in",
    "front of `longline serve` and name its address with --origin https://relay.example.",
  ].join("\n");
}

function json(value: unknown): string {
  return JSON.stringify(value, undefined, 2);
}
