/** The kind of service that this machine has. */
import { homedir } from "node:os";
import { join } from "node:path";
import { ApiError } from "../../errors.ts";
import type { Terminal } from "../terminal.ts";
import { launchd } from "./launchd.ts";
import type { ServiceKind } from "./service.ts";
import { systemd } from "./systemd.ts";
import { termux } from "./termux.ts";
import { windowsTask } from "./windows-task.ts";

/** Names that `--system` takes. */
export const SYSTEMS = ["systemd", "launchd", "windows", "termux"] as const;
export type System = (typeof SYSTEMS)[number];

/** The kind for a system; this machine's own unless another is named. */
export function serviceKind(env: Terminal["env"], system: System = thisSystem(env)): ServiceKind {
  const home = env["HOME"] ?? homedir();
  if (system === "launchd") return launchd(home, process.getuid?.() ?? 501);
  if (system === "windows") return windowsTask(env["LOCALAPPDATA"] ?? join(home, "AppData", "Local"));
  if (system === "termux") return termux(home);
  const configHome = env["XDG_CONFIG_HOME"];
  return systemd(configHome !== undefined && configHome.startsWith("/") ? configHome : join(home, ".config"));
}

/** The system this runs on. */
export function thisSystem(env: Terminal["env"], platform: NodeJS.Platform = process.platform): System {
  if (platform === "darwin") return "launchd";
  if (platform === "win32") return "windows";
  if (platform === "android" || env["TERMUX_VERSION"] !== undefined) return "termux";
  if (platform === "linux") return "systemd";
  throw new ApiError("failed", `There is no service for ${platform} here. Start \`longline agent\` from your system's own start scripts.`);
}
