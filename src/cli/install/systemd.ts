/** A unit of the user's own systemd (systemd.service(5), systemd.exec(5)). */
import { join } from "node:path";
import type { ServiceKind, ServicePlan } from "./service.ts";

/** Exit codes with which another start would end alike: wrong usage, and a key that is not accepted. */
const FINAL_EXITS = "2 3";

/** systemd for the user with this configuration directory (`XDG_CONFIG_HOME`). */
export function systemd(configHome: string): ServiceKind {
  return {
    system: "systemd (user)",
    isTested: true,
    path: (name) => join(configHome, "systemd", "user", `${name}.service`),
    render: renderUnit,
    encoding: "utf8",
    mode: 0o644,
    start: (name) => [
      ["systemctl", "--user", "daemon-reload"],
      ["systemctl", "--user", "enable", "--now", `${name}.service`],
    ],
    stop: (name) => [["systemctl", "--user", "disable", "--now", `${name}.service`]],
    removed: () => [["systemctl", "--user", "daemon-reload"]],
    hint: "It runs while you are logged in; `loginctl enable-linger` keeps it running always. Its log: journalctl --user -u NAME",
  };
}

function renderUnit({ description, argv, cwd, env }: ServicePlan): string {
  const environment = Object.entries(env).map(([name, value]) => `Environment=${quote(`${name}=${value}`)}`);
  return `[Unit]
Description=${percent(description)}
StartLimitIntervalSec=0

[Service]
ExecStart=${argv.map((word) => quote(word.replaceAll("$", "$$$$"))).join(" ")}
WorkingDirectory=${percent(cwd)}
${environment.map((line) => `${line}\n`).join("")}UMask=0077
NoNewPrivileges=yes
KillMode=mixed
TimeoutStopSec=20
Restart=always
RestartSec=5
RestartPreventExitStatus=${FINAL_EXITS}

[Install]
WantedBy=default.target
`;
}

/** A word in double quotes, with systemd's escapes; its specifiers are taken literally. */
function quote(word: string): string {
  return `"${percent(word.replaceAll("\\", "\\\\").replaceAll('"', '\\"'))}"`;
}

function percent(text: string): string {
  return text.replaceAll("%", "%%");
}
