/**
 * Commands are not run through a shell, but a command can be one, or hand its arguments to one on another machine. What
 * a caller says must not become part of a script there. Pure.
 */
import { namesIn } from "../declared/placeholders.ts";
import { propertiesOf } from "../declared/schema-check.ts";
import type { ToolSection } from "./declared-section.ts";
import type { Finding } from "./mistakes.ts";

const POSIX_SHELLS = new Set(["sh", "bash", "dash", "ash", "zsh", "ksh", "fish"]);
/** All of their arguments are one script. */
const OTHER_SHELLS = new Set(["cmd", "powershell", "pwsh"]);
/** Join their arguments and give them to a shell at the other end. */
const REMOTE = new Set(["ssh", "rsh"]);

/** Placeholders where a shell would read them as a script. */
export function checkShells(tool: ToolSection): Finding[] {
  const command = tool.command ?? [];
  const findings: Finding[] = [];
  for (const [index, part] of command.entries()) {
    const names = namesIn(part);
    if (names.length === 0) continue;
    const reader = readerOf(command.slice(0, index));
    if (reader === "script")
      findings.push({
        path: ["command", index],
        text: 'puts what a caller says into a shell script; pass it on its own, as in ["sh", "-c", "echo \\"$1\\"", "sh", "{text}"]',
      });
    if (reader !== "remote") continue;
    for (const name of names)
      if (!isHarmless(propertiesOf(tool.inputSchema)[name]))
        findings.push({
          path: ["command", index],
          text: `gives {${name}} to a shell on the other side: make it a number, an enum, or a string with a pattern from ^ to $`,
        });
  }
  return findings;
}

/** Who reads the next argument, by those before it. */
function readerOf(before: readonly string[]): "program" | "script" | "remote" {
  const programs = before.map(baseName);
  if (programs.some((name) => OTHER_SHELLS.has(name))) return "script";
  const shell = programs.findIndex((name) => POSIX_SHELLS.has(name));
  if (shell >= 0 && /^-[a-z]*c$/.test(before.at(-1) ?? "")) return "script";
  if (programs.some((name) => REMOTE.has(name))) return "remote";
  return programs.includes("adb") && (before.includes("shell") || before.includes("exec-out")) ? "remote" : "program";
}

function baseName(part: string): string {
  return (part.split(/[\\/]/).at(-1) ?? "").toLowerCase().replace(/\.exe$/, "");
}

function isHarmless(property: Record<string, unknown> | undefined): boolean {
  if (!property) return true; // Said elsewhere.
  const { type, pattern } = property;
  if (type === "integer" || type === "number" || type === "boolean") return true;
  if (Array.isArray(property["enum"]) || Object.hasOwn(property, "const")) return true;
  return typeof pattern === "string" && pattern.startsWith("^") && pattern.endsWith("$");
}
