/**
 * The command line of a declared tool. There is no shell: an argument of the call ends up in one argument of the
 * program, whatever it holds. What could still turn it into an option of the program is refused. Pure.
 */
import { DECLARED } from "../../limits.ts";
import { ToolError } from "../upstreams/builtin.ts";
import { argumentText, fill, piecesOf } from "./placeholders.ts";

/** After it, programs take everything as it is. */
const END_OF_OPTIONS = "--";

/** The program's arguments for a call. Throws ToolError. */
export function commandArguments(
  templates: readonly string[],
  values: Readonly<Record<string, unknown>>,
  platform: NodeJS.Platform = process.platform,
): string[] {
  const end = templates.indexOf(END_OF_OPTIONS);
  return templates.map((template, index) => {
    const isAfterOptions = end >= 0 && index > end;
    if (!isAfterOptions) refuseOption(template, values, platform);
    const argument = fill(template, (name) => argumentText(values[name]));
    if (argument.includes("\0")) throw new ToolError("An argument holds a character that no command line takes.");
    if (argument.length > DECLARED.argumentLength) throw new ToolError("An argument is too long for a command line.");
    return argument;
  });
}

/** A value that begins an argument of the program begins no option; a number may be negative. */
function refuseOption(template: string, values: Readonly<Record<string, unknown>>, platform: NodeJS.Platform): void {
  for (const piece of piecesOf(template)) {
    if ("text" in piece) return;
    const value = values[piece.name];
    const text = argumentText(value);
    if (typeof value === "number") return;
    if (text.startsWith("-") || (platform === "win32" && text.startsWith("/")))
      throw new ToolError(`The argument ${piece.name} may not begin with ${JSON.stringify(text[0])}.`);
    if (text !== "") return; // An empty value leaves the beginning to the next piece.
  }
}
