/**
 * The dialog that asks when there is no terminal: a program with an entry field, for a typed word. `notify-send` has
 * none: its buttons can be pressed by a slip, so it is not used. Pure. zenity and kdialog print what was typed;
 * osascript and PowerShell are rendered and unit-tested, and untested on real machines.
 */
import type { ToolHost } from "../tools/find-program.ts";
import { powershellArgs, powershellText } from "../tools/powershell.ts";

export interface DialogCommand {
  command: string;
  args: string[];
}

const TITLE = "Longline";

/** How to ask on this machine's desktop, or why that does not work. The text is cleaned already. */
export function dialogCommand(host: ToolHost, text: string, seconds: number): DialogCommand | { problem: string } {
  if (host.platform === "darwin") return osascript(text, seconds);
  if (host.platform === "win32") return inputBox(text);
  const hasDisplay = Boolean(host.env["DISPLAY"]) || Boolean(host.env["WAYLAND_DISPLAY"]);
  if (!hasDisplay) return { problem: "the agent has no terminal and no desktop to ask on" };
  if (host.has("zenity"))
    return { command: "zenity", args: ["--entry", `--title=${TITLE}`, `--text=${escapeMarkup(text)}`, `--timeout=${seconds}`] };
  // Its text may hold HTML, which begins with a tag; an escaped text has none.
  if (host.has("kdialog")) return { command: "kdialog", args: ["--title", TITLE, "--inputbox", escapeMarkup(text), ""] };
  return { problem: "the agent has no terminal, and neither zenity nor kdialog is installed to ask on the desktop" };
}

function osascript(text: string, seconds: number): DialogCommand {
  // The text is an argument of the script, never part of it.
  const script = [
    "on run argv",
    `set theAnswer to display dialog (item 1 of argv) default answer "" with title "${TITLE}" giving up after ${seconds}`,
    'if gave up of theAnswer then return ""',
    "return text returned of theAnswer",
    "end run",
  ];
  return { command: "osascript", args: [...script.flatMap((line) => ["-e", line]), text] };
}

function inputBox(text: string): DialogCommand {
  const script = `Add-Type -AssemblyName Microsoft.VisualBasic; [Console]::Out.Write([Microsoft.VisualBasic.Interaction]::InputBox(${powershellText(text)}, '${TITLE}', ''))`;
  return { command: "powershell.exe", args: powershellArgs(script) };
}

/** Pango and HTML markup made literal. */
function escapeMarkup(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
