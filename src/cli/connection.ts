/** Which relay a command talks to, and with which owner token: options, then environment, then a relay in `.longline/`. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { Option, type Command } from "commander";
import { ApiError } from "../errors.ts";
import { readOwnerToken } from "../serve/data-dir.ts";
import { runningRelay } from "../serve/lock.ts";
import { OwnerApi } from "./owner-api.ts";
import type { Terminal } from "./terminal.ts";

/** The data directory of a relay that was started here without `--data`. */
export const LOCAL_DATA = ".longline";

/** The options of every owner command. */
export interface OwnerOptions {
  relay?: string;
  ownerToken?: string;
  json?: boolean;
}

/** Adds `--relay`, `--owner-token` and `--json` to a command. */
export function withOwnerOptions(command: Command): Command {
  return command
    .addOption(relayOption())
    .addOption(
      new Option(
        "--owner-token <token>",
        "the relay's owner token (or LONGLINE_OWNER_TOKEN, which other users of this machine cannot see)",
      ),
    )
    .option("--json", "print one JSON value on stdout and nothing else");
}

/** `--relay`, the same everywhere. */
export function relayOption(): Option {
  return new Option("--relay <url>", `the relay's address (or LONGLINE_RELAY; without either, the relay running in ${LOCAL_DATA}/)`);
}

/** The owner API to use, or a failure that says what to pass. */
export async function connect(terminal: Terminal, options: OwnerOptions): Promise<OwnerApi> {
  const local = join(terminal.cwd, LOCAL_DATA);
  const given = options.relay ?? present(terminal.env["LONGLINE_RELAY"]);
  const running = runningRelay(local);
  const relay = given === undefined ? running : parseRelay(given).origin;
  if (relay === undefined) throw noRelay(local);
  // SECURITY: the local token is offered to the local relay only.
  const kept = relay === running ? await readOwnerToken(local).catch(() => undefined) : undefined;
  const token = options.ownerToken ?? present(terminal.env["LONGLINE_OWNER_TOKEN"]) ?? kept;
  if (token === undefined)
    throw new ApiError("not_authorised", `No owner token for ${relay}. Pass --owner-token or set LONGLINE_OWNER_TOKEN.`);
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new ApiError("not_authorised", "The owner token holds characters that no token has. Copy it again.");
  return new OwnerApi(new URL(relay), token);
}

/** The relay an agent dials: option, environment, or the one running here. */
export async function findRelay(terminal: Terminal, option: string | undefined): Promise<URL> {
  const given = option ?? present(terminal.env["LONGLINE_RELAY"]);
  if (given !== undefined) return parseRelay(given);
  const local = join(terminal.cwd, LOCAL_DATA);
  const running = runningRelay(local);
  if (running === undefined) throw noRelay(local);
  return new URL(running);
}

/** A relay's address; its path, if any, is not part of it. */
export function parseRelay(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isWeb = url?.protocol === "https:" || url?.protocol === "http:";
  if (url === undefined || !isWeb || url.username !== "" || url.password !== "") {
    throw new ApiError("bad_request", "The relay's address must look like https://relay.example or http://127.0.0.1:8787.");
  }
  return new URL(url.origin);
}

function noRelay(local: string): ApiError {
  if (existsSync(local)) {
    return new ApiError(
      "relay_unreachable",
      `The relay that keeps its data in ${LOCAL_DATA}/ does not run. Start it with \`longline serve\`, or pass --relay URL.`,
    );
  }
  return new ApiError(
    "bad_request",
    `Which relay? Pass --relay URL, set LONGLINE_RELAY, or run this where a relay keeps its data in ${LOCAL_DATA}/.`,
  );
}

function present(text: string | undefined): string | undefined {
  return text === undefined || text === "" ? undefined : text;
}
