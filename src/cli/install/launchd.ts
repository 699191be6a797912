/** An agent of the user's launchd on macOS (launchd.plist(5)). */
import { join } from "node:path";
import type { ServiceKind, ServicePlan } from "./service.ts";
import { xmlText } from "./xml.ts";

/** launchd for the user with this home and number. */
export function launchd(home: string, uid: number): ServiceKind {
  const label = (name: string): string => `dev.longline.${name}`;
  const path = (name: string): string => join(home, "Library", "LaunchAgents", `${label(name)}.plist`);
  return {
    system: "launchd (macOS)",
    isTested: false,
    path,
    render: (plan) => renderPlist(label(plan.name), join(home, "Library", "Logs", `${plan.name}.log`), plan),
    encoding: "utf8",
    mode: 0o644,
    start: (name) => [["launchctl", "bootstrap", `gui/${uid}`, path(name)]],
    stop: (name) => [["launchctl", "bootout", `gui/${uid}/${label(name)}`]],
    removed: () => [],
    hint: "Its log is in ~/Library/Logs/NAME.log.",
  };
}

function renderPlist(label: string, log: string, { argv, cwd, env }: ServicePlan): string {
  const pairs = Object.entries(env).map(([name, value]) => `      <key>${xmlText(name)}</key><string>${xmlText(value)}</string>\n`);
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
  <dict>
    <key>Label</key><string>${xmlText(label)}</string>
    <key>ProgramArguments</key>
    <array>
${argv.map((word) => `      <string>${xmlText(word)}</string>\n`).join("")}    </array>
    <key>WorkingDirectory</key><string>${xmlText(cwd)}</string>
    <key>EnvironmentVariables</key>
    <dict>
${pairs.join("")}    </dict>
    <key>RunAtLoad</key><true/>
    <key>KeepAlive</key><true/>
    <key>ThrottleInterval</key><integer>10</integer>
    <key>Umask</key><integer>63</integer>
    <key>StandardErrorPath</key><string>${xmlText(log)}</string>
  </dict>
</plist>
`;
}
