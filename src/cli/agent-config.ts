/** The configuration file of `longline agent`: where it is, what it says now, and when it changes. */
import { access } from "node:fs/promises";
import { join } from "node:path";
import { loadConfig, type LoadedConfig } from "../agent/config/load-config.ts";
import { ConfigError } from "../agent/config/mistakes.ts";
import { watchFile } from "../agent/config/watch-file.ts";
import type { AgentHandle, UpstreamConfig } from "../agent/types.ts";
import { ApiError } from "../errors.ts";
import { isChangeableByOthers, isOpenToOthers } from "../serve/secret-file.ts";
import { parseHeaders, readSecretText } from "./headers-file.ts";
import type { Terminal } from "./terminal.ts";

/** Its name where no other is given. */
const FILE_NAME = "longline.toml";

/** The file in a directory; undefined when there is none. */
export async function configIn(directory: string): Promise<string | undefined> {
  const path = join(directory, FILE_NAME);
  return await access(path).then(
    () => path,
    () => undefined,
  );
}

/** Loads a file for a start. A line for each mistake goes to stderr, then it rejects with an ApiError. */
export async function readAgentConfig(terminal: Terminal, path: string): Promise<LoadedConfig> {
  try {
    const config = await load(terminal, path);
    terminal.err(`configuration: ${path}`);
    for (const text of config.warnings) terminal.err(`warning: ${text}`);
    return config;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const line of error.lines) terminal.err(line);
    throw new ApiError("bad_request", `${error.message} Correct it and start again.`);
  }
}

async function load(terminal: Terminal, path: string): Promise<LoadedConfig> {
  const warn = (text: string) => terminal.err(`warning: ${text}`);
  const config = await loadConfig(path, async (file) => parseHeaders(await readSecretText(file, warn)));
  if (config.hasSecrets && (await isOpenToOthers(path)))
    warn(`Other users of this machine can read ${path}, which sets variables. Close it with: chmod 600 ${path}`);
  else if (await isChangeableByOthers(path))
    warn(`Other users of this machine can change ${path}, which says what is run. Close it with: chmod 600 ${path}`);
  return config;
}

/** What is offered beside the file, from the command line. */
export interface ConfigFollower {
  /** Reads the file again, even when it did not change. */
  reload(): void;
  close(): void;
}

/** Puts the file's changes in force as they come. What cannot be used is said, and changes nothing. */
export function followAgentConfig(
  terminal: Terminal,
  path: string,
  { first, beside, handle }: { first: LoadedConfig; beside: readonly UpstreamConfig[]; handle: AgentHandle },
): ConfigFollower {
  let inForce = textOf(first);
  let work = Promise.resolve();
  const read = async (isAsked: boolean) => {
    try {
      const config = await load(terminal, path);
      const text = textOf(config);
      if (text === inForce && !isAsked) return;
      const upstreams = [...config.upstreams, ...beside];
      if (upstreams.length === 0) throw new ConfigError(path, [{ path: [], line: 1, text: "nothing is offered any more" }]);
      checkAliases(upstreams, path);
      inForce = text;
      handle.setPolicy(config.policy);
      handle.reconfigure(upstreams);
      terminal.err(`configuration: ${path} was read again and is in force`);
      for (const warning of config.warnings) terminal.err(`warning: ${warning}`);
    } catch (error) {
      if (error instanceof ConfigError) for (const line of error.lines) terminal.err(line);
      const why = error instanceof ConfigError || error instanceof ApiError ? error.message : `${path} could not be read.`;
      terminal.err(`warning: ${why} The configuration before stays in force.`);
    }
  };
  // One after the other, so that the last one wins.
  const reload = (isAsked: boolean) => {
    work = work.then(async () => await read(isAsked));
  };
  const watch = watchFile(
    path,
    () => reload(false),
    () => terminal.err(`warning: changes of ${path} cannot be noticed here; after one, send the agent SIGHUP`),
  );
  return { reload: () => reload(true), close: () => watch.close() };
}

/** The command line's server has an alias too. Throws an ApiError. */
export function checkAliases(upstreams: readonly UpstreamConfig[], path: string): void {
  const seen = new Set<string>();
  for (const { kind, alias } of upstreams) {
    if (kind !== "declared" && seen.has(alias))
      throw new ApiError(
        "bad_request",
        `upstreams.${alias} of ${path} and the server of the command line have one name. Rename upstreams.${alias}.`,
      );
    seen.add(alias);
  }
}

function textOf({ upstreams, policy }: LoadedConfig): string {
  return JSON.stringify({ upstreams, policy });
}
