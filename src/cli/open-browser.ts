/** Opens an address in the person's browser, as far as the system has a way to. */
import { spawn } from "node:child_process";
import type { Terminal } from "./terminal.ts";

/** Starts the browser; whether a window appeared nobody says, so the address is printed as well. */
export function openBrowser(env: Terminal["env"], url: URL): void {
  const [command, ...args] = browserCommand(env, process.platform);
  const child = spawn(command, [...args, url.href], { detached: true, stdio: "ignore", windowsHide: true });
  // A system without a browser: the printed address is the way.
  child.once("error", () => undefined);
  child.unref();
}

/** The command in front of the address. `BROWSER` names another one. */
export function browserCommand(env: Terminal["env"], platform: NodeJS.Platform): [string, ...string[]] {
  const chosen = env["BROWSER"];
  if (chosen !== undefined && chosen !== "") return [chosen];
  if (platform === "darwin") return ["open"];
  // No shell: an `&` in the address would be one.
  return platform === "win32" ? ["rundll32", "url.dll,FileProtocolHandler"] : ["xdg-open"];
}
