/** Where an agent keeps its installation id and journal when `--state` does not say. */
import { homedir } from "node:os";
import { join } from "node:path";

/** The user's state directory for one device: agents of two devices on one machine never share a journal. */
export function defaultStateDir(env: Readonly<Record<string, string | undefined>>, deviceId: string): string {
  return join(stateHome(env), "longline", deviceId);
}

/** XDG base directory specification; the usual places on macOS and Windows. */
function stateHome(env: Readonly<Record<string, string | undefined>>): string {
  const xdg = env["XDG_STATE_HOME"];
  if (xdg !== undefined && xdg.startsWith("/")) return xdg;
  if (process.platform === "darwin") return join(homedir(), "Library", "Application Support");
  if (process.platform === "win32") return env["LOCALAPPDATA"] ?? join(homedir(), "AppData", "Local");
  return join(homedir(), ".local", "state");
}
