/** `longline serve`: a relay on this machine. */
import { resolve } from "node:path";
import { InvalidArgumentError, type Command } from "commander";
import { ApiError } from "../../errors.ts";
import { readSignInConfig, SIGN_IN_VARIABLES } from "../../policy/sign-in-config.ts";
import { ownerTokenPath } from "../../serve/data-dir.ts";
import { LOCAL_DATA } from "../connection.ts";
import { parsePort } from "../numbers.ts";
import { listenForStop } from "../stop-signals.ts";
import { printJson, type Terminal } from "../terminal.ts";

interface ServeOptions {
  port?: number;
  data: string;
  origin?: string[];
  trustedProxy?: string | true;
  json?: boolean;
}

/** Adds the `serve` command to the program. */
export function addServeCommand(program: Command, terminal: Terminal): void {
  program
    .command("serve")
    .description("run a relay on this machine, without a Cloudflare account")
    .option("--port <port>", "port on 127.0.0.1 (default: that of the last start, else 8787 or a free one)", parsePort)
    .option("--data <dir>", "directory that keeps its data", LOCAL_DATA)
    .option("--origin <url>", "public address when a TLS proxy stands in front; may be repeated, the first is canonical", collectOrigin)
    .option(
      "--trusted-proxy [header]",
      "believe the client's address in this header, set by a proxy of yours that everybody comes through (default header: X-Forwarded-For)",
      parseHeader,
    )
    .option("--json", "print url, ownerToken and consoleUrl as one JSON value when it is ready")
    .addHelpText("after", "\nExample:\n  longline serve --data /var/lib/longline --origin https://relay.example")
    .action(async (options: ServeOptions) => await serve(terminal, options));
}

async function serve(terminal: Terminal, options: ServeOptions): Promise<void> {
  // Everything below the data directory is for its owner only, also what the runtime writes.
  process.umask(0o077);
  using stop = listenForStop(terminal.env);
  const dataDir = resolve(terminal.cwd, options.data);
  const { promise: ended, resolve: onExit } = Promise.withResolvers<"ended">();
  // Loaded when needed: the other commands start faster without the runtime.
  const { startRelay } = await import("../../serve/relay.ts");
  const relay = await startRelay({
    dataDir,
    port: options.port,
    origins: options.origin,
    vars: relayVariables(terminal, options),
    log: (line) => terminal.err(line),
    onExit: () => onExit("ended"),
  });
  const { url, ownerToken, consoleUrl } = relay;
  if (options.json === true) printJson(terminal, { url, ownerToken, consoleUrl });
  else
    terminal.err(
      `Relay ready at ${url}\nOwner token in ${ownerTokenPath(dataDir)}\nNext: ${nextCommand(terminal, dataDir, relay.localUrl)}\nStop with Ctrl-C.`,
    );
  const why = await Promise.race([stop.stopped, ended]);
  await relay.stop();
  if (why === "ended") throw new ApiError("failed", "The relay's runtime ended unexpectedly. Its log above may say why; start it again.");
}

/** What to type next in another terminal here: a relay in the usual directory is found by itself. */
function nextCommand(terminal: Terminal, dataDir: string, url: string): string {
  const command = "longline device add NAME";
  if (dataDir === resolve(terminal.cwd, LOCAL_DATA)) return command;
  return `LONGLINE_OWNER_TOKEN="$(cat '${ownerTokenPath(dataDir)}')" ${command} --relay ${url}`;
}

/** Variables of the environment that the relay reads, and what the options say. A wrong one stops the start. */
function relayVariables(terminal: Terminal, { trustedProxy }: ServeOptions): Record<string, string> {
  const given = SIGN_IN_VARIABLES.map((name) => [name, terminal.env[name]] as const);
  const variables = Object.fromEntries(given.filter((pair): pair is [(typeof pair)[0], string] => pair[1] !== undefined));
  try {
    readSignInConfig(variables);
  } catch (error) {
    throw new ApiError("bad_request", error instanceof Error ? `${error.message}.` : "The sign-in variables are wrong.");
  }
  if (trustedProxy === undefined) return variables;
  return { ...variables, LONGLINE_PROXY_HEADER: trustedProxy === true ? "X-Forwarded-For" : trustedProxy };
}

function parseHeader(value: string): string {
  if (!/^[A-Za-z0-9-]{1,64}$/.test(value)) throw new InvalidArgumentError("Give the name of a header, such as X-Forwarded-For.");
  return value;
}

function collectOrigin(value: string, before: string[] | undefined): string[] {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const isOrigin = url !== undefined && /^https?:$/.test(url.protocol) && (value === url.origin || value === `${url.origin}/`);
  if (!isOrigin) throw new InvalidArgumentError("Give an origin such as https://relay.example, without a path.");
  return [...(before ?? []), url.origin];
}
