/** Where an agent keeps its installation id and journal when `--state` does not say. */
import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** The user's state directory for one device: agents of two devices on one machine never share a journal. */
export function defaultStateDir(env: Readonly<Record<string, string | undefined>>, deviceId: string): string {
  return join(stateHome(env), "longline", deviceId);
}

/** The state directories of all agents that were run without `--state`. */
export function agentStateDirs(env: Readonly<Record<string, string | undefined>>): string[] {
  const home = join(stateHome(env), "longline");
  return existsSync(home)
    ? readdirSync(home)
        .filter((name) => /^[0-9a-f]{32}$/.test(name))
        .map((name) => join(home, name))
    : [];
}

/** Where the key is kept that this machine was paired with at a relay; one for each name it was paired under. */
export function pairedKeyPath(env: Readonly<Record<string, string | undefined>>, relay: URL, name: string | undefined): string {
  const place = relay.host.replaceAll(/[^a-z0-9.-]/g, "_");
  return join(stateHome(env), "longline", "paired", name === undefined ? place : `${place}_${name.replaceAll(/[^a-z0-9-]/g, "_")}`);
}

/** Where `longline connect` keeps what it signed in with, one file for each MCP URL. */
export function signInPath(env: Readonly<Record<string, string | undefined>>, mcpUrl: URL): string {
  const place = `${mcpUrl.host}${mcpUrl.pathname}`.replaceAll(/[^a-z0-9.-]/g, "_");
  return join(stateHome(env), "longline", "signed-in", `${place}.json`);
}

/** XDG base directory specification; the usual places on macOS and Windows. */
function stateHome(env: Readonly<Record<string, string | undefined>>): string {
  const xdg = env["XDG_STATE_HOME"];
  if (xdg !== undefined && xdg.startsWith("/")) return xdg;
  if (process.platform === "darwin") return join(homedir(), "Library", "Application Support");
  if (process.platform === "win32") return env["LOCALAPPDATA"] ?? join(homedir(), "AppData", "Local");
  return join(homedir(), ".local", "state");
}
