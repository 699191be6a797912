/** `longline connect`: a device's tools on stdio, for clients that cannot speak HTTP. */
import { once } from "node:events";
import type { Command } from "commander";
import { LineFramer } from "../../agent/upstreams/line-framer.ts";
import { ApiError } from "../../errors.ts";
import { EDGE } from "../../limits.ts";
import { Bridge } from "../connect/bridge.ts";
import { RelayHttp, type TokenSource } from "../connect/relay-http.ts";
import { caFileOption, useCaFile } from "../ca-file.ts";
import { findRelay, parseRelay, relayOption } from "../connection.ts";
import { readSecretText } from "../headers-file.ts";
import { openBrowser } from "../open-browser.ts";
import { signInPath } from "../state-dir.ts";
import { listenForStop } from "../stop-signals.ts";
import type { Terminal } from "../terminal.ts";

interface ConnectOptions {
  relay?: string;
  token?: string;
  tokenFile?: string;
  caFile?: string;
}

/** Adds the `connect` command to the program. */
export function addConnectCommand(program: Command, terminal: Terminal): void {
  program
    .command("connect")
    .description("speak MCP on stdin and stdout with a device, for clients that only start commands")
    .argument("<device>", "the device's name, or its whole MCP URL")
    .addOption(relayOption())
    .option("--token <token>", "access token (better in LONGLINE_TOKEN, which other users of this machine cannot see)")
    .option("--token-file <file>", "file that holds the access token; without any token a browser opens to sign in")
    .addOption(caFileOption())
    .addHelpText(
      "after",
      '\nExample:\n  longline connect kitchen-pi --relay https://relay.example\n\nThe same as an entry of a client\'s mcpServers:\n  { "kitchen-pi": { "command": "longline", "args": ["connect", "kitchen-pi", "--relay", "https://relay.example"] } }',
    )
    .action(async (device: string, options: ConnectOptions) => await connectDevice(terminal, device, options));
}

async function connectDevice(terminal: Terminal, device: string, options: ConnectOptions): Promise<void> {
  using stop = listenForStop(terminal.env);
  await useCaFile(terminal, options.caFile);
  const mcpUrl = await mcpUrlOf(terminal, device, options.relay);
  const http = new RelayHttp(mcpUrl, await tokensFor(terminal, mcpUrl, options));
  const bridge = new Bridge({ http, write: writeLine, warn: (text) => terminal.err(`longline connect: ${text}`) });
  const framer = new LineFramer(
    EDGE.maxRequestBytes,
    (line) => void (line.toString("utf8").trim() !== "" && bridge.take(line)),
    ({ size }) => terminal.err(`longline connect: ignored a message of ${size} bytes; the most is ${EDGE.maxRequestBytes}`),
  );
  process.stdin.on("data", (chunk: Buffer) => framer.push(chunk));
  await Promise.race([once(process.stdin, "end"), once(process.stdin, "error"), stop.stopped]);
  framer.end();
  await bridge.end();
  process.stdin.destroy();
}

async function mcpUrlOf(terminal: Terminal, device: string, relay: string | undefined): Promise<URL> {
  if (!/^https?:\/\//.test(device)) return new URL(`/mcp/${encodeURIComponent(device)}`, await findRelay(terminal, relay));
  const url = URL.canParse(device) ? new URL(device) : undefined;
  if (url === undefined || !/^\/mcp\/[^/]+\/?$/.test(url.pathname))
    throw new ApiError("bad_request", "An MCP URL looks like https://relay.example/mcp/kitchen-pi.");
  return new URL(url.pathname.replace(/\/$/, ""), parseRelay(url.origin));
}

/** A token that was given, else whatever signing in gives. */
async function tokensFor(terminal: Terminal, mcpUrl: URL, options: ConnectOptions): Promise<TokenSource> {
  const file = options.tokenFile;
  const fromFile = file === undefined ? undefined : await readSecretText(file, (text) => terminal.err(`warning: ${text}`));
  const given = (fromFile ?? options.token ?? terminal.env["LONGLINE_TOKEN"] ?? "").trim();
  if (given !== "") return fixedToken(given);
  const { SignIn } = await import("../connect/sign-in.ts");
  return new SignIn({
    mcpUrl,
    path: signInPath(terminal.env, mcpUrl),
    show: (url) => {
      terminal.err(`Sign in to use ${mcpUrl.href}:\n\n  ${url.href}\n`);
      openBrowser(terminal.env, url);
    },
  });
}

function fixedToken(token: string): TokenSource {
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new ApiError("not_authorised", "The access token holds characters that no token has. Copy it again.");
  return { current: async () => await Promise.resolve(token), renewed: async () => await Promise.resolve(undefined) };
}

/** Resolves when the client's end of the pipe has room again. */
async function writeLine(line: string): Promise<void> {
  await new Promise<void>((resolve) => process.stdout.write(`${line}\n`, () => resolve()));
}
