/** A script that Termux:Boot runs when an Android phone has started. */
import { join } from "node:path";
import type { ServiceKind, ServicePlan } from "./service.ts";

/** Termux for the user with this home. */
export function termux(home: string): ServiceKind {
  return {
    system: "Termux:Boot",
    isTested: false,
    path: (name) => join(home, ".termux", "boot", name),
    render: renderScript,
    encoding: "utf8",
    mode: 0o700,
    start: () => [],
    stop: () => [],
    removed: () => [],
    hint: "It starts with the phone, once the app Termux:Boot was opened. Start it now by running the file.",
  };
}

function renderScript({ description, argv, cwd, env }: ServicePlan): string {
  const exports = Object.entries(env).map(([name, value]) => `export ${name}=${quote(value)}\n`);
  return `#!/data/data/com.termux/files/usr/bin/sh
# ${description}
termux-wake-lock
cd ${quote(cwd)} || exit 1
umask 077
${exports.join("")}while :; do
  ${argv.map(quote).join(" ")}
  # 0: asked to stop; 2 and 3: another start would end alike.
  case $? in 0|2|3) exit ;; esac
  sleep 5
done
`;
}

function quote(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
