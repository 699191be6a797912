/** The tools `clipboard_get` and `clipboard_set`: text only. */
import { z } from "zod";
import { TOOLS } from "../../limits.ts";
import type { BuiltinTool } from "../types.ts";
import { ToolError } from "../upstreams/builtin.ts";
import { CHANGES, READS } from "./annotations.ts";
import { inputSchema, readArguments } from "./arguments.ts";
import { missing, ready, type Ready } from "./availability.ts";
import type { ToolHost } from "./find-program.ts";
import { runHelper, type Helper } from "./helper.ts";
import { powershellArgs } from "./powershell.ts";

/** How the clipboard is read and set here. */
export interface ClipboardPrograms {
  get: Helper;
  set: Helper;
  /** The clipboard's programs speak Base64, because pipes to them would change the text. */
  isBase64?: boolean;
}

const GetArguments = z.strictObject({});
const SetArguments = z.strictObject({ text: z.string().describe("Text to put on the clipboard") });
const GET_OUTPUT = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
const SET_OUTPUT = { type: "object", properties: { bytes: { type: "integer" } }, required: ["bytes"] };

/** The programs of this machine. */
export function findClipboard({ platform, env, has }: ToolHost): Ready<ClipboardPrograms> {
  if (platform === "darwin") return ready({ get: { command: "pbpaste", args: [] }, set: { command: "pbcopy", args: [] } });
  if (platform === "win32") return ready(windowsClipboard());
  if (has("termux-clipboard-get"))
    return ready({ get: { command: "termux-clipboard-get", args: [] }, set: { command: "termux-clipboard-set", args: [] } });
  if (env["WAYLAND_DISPLAY"] && has("wl-paste"))
    return ready({
      get: { command: "wl-paste", args: ["--no-newline", "--type", "text"] },
      set: { command: "wl-copy", args: [], leaves: true },
    });
  if (!env["DISPLAY"] && !env["WAYLAND_DISPLAY"]) return missing("there is no desktop", "start the agent inside the desktop session");
  if (has("xclip")) {
    const args = ["-selection", "clipboard"];
    return ready({ get: { command: "xclip", args: [...args, "-out"] }, set: { command: "xclip", args: [...args, "-in"], leaves: true } });
  }
  if (has("xsel"))
    return ready({
      get: { command: "xsel", args: ["--clipboard", "--output"] },
      set: { command: "xsel", args: ["--clipboard", "--input"], leaves: true },
    });
  return missing("no clipboard program is installed", "install xclip, xsel or wl-clipboard");
}

/** The tools, with this machine's programs. */
export function clipboardTools(programs: ClipboardPrograms): BuiltinTool[] {
  return [getTool(programs), setTool(programs)];
}

function getTool({ get, isBase64 }: ClipboardPrograms): BuiltinTool {
  return {
    name: "clipboard_get",
    title: "Read the clipboard",
    description: "Returns the text on the device's clipboard.",
    inputSchema: inputSchema(GetArguments),
    outputSchema: GET_OUTPUT,
    annotations: READS,
    run: async (args, context) => {
      readArguments(GetArguments, args);
      const bytes = await runHelper(get, context, isBase64 === true ? 2 * TOOLS.clipboardBytes : TOOLS.clipboardBytes);
      const text = (isBase64 === true ? Buffer.from(bytes.toString("latin1"), "base64") : bytes).toString("utf8");
      return { content: [{ type: "text", text }], structuredContent: { text } };
    },
  };
}

function setTool({ set, isBase64 }: ClipboardPrograms): BuiltinTool {
  return {
    name: "clipboard_set",
    title: "Set the clipboard",
    description: "Puts text on the device's clipboard, in place of what was there.",
    inputSchema: inputSchema(SetArguments),
    outputSchema: SET_OUTPUT,
    annotations: CHANGES,
    run: async (args, context) => {
      const { text } = readArguments(SetArguments, args);
      const bytes = Buffer.byteLength(text);
      if (bytes > TOOLS.clipboardBytes) throw new ToolError(`The clipboard takes at most ${TOOLS.clipboardBytes} bytes.`);
      await runHelper(
        { ...set, stdin: isBase64 === true ? Buffer.from(text).toString("base64") : text },
        context,
        TOOLS.helperMessageBytes,
      );
      return { content: [{ type: "text", text: `The clipboard holds ${bytes} bytes of text.` }], structuredContent: { bytes } };
    },
  };
}

function windowsClipboard(): ClipboardPrograms {
  const read = "[Console]::Out.Write([Convert]::ToBase64String([Text.Encoding]::UTF8.GetBytes([string](Get-Clipboard -Raw))))";
  const write = "Set-Clipboard -Value ([Text.Encoding]::UTF8.GetString([Convert]::FromBase64String([Console]::In.ReadToEnd())))";
  return {
    get: { command: "powershell.exe", args: powershellArgs(read) },
    set: { command: "powershell.exe", args: powershellArgs(write) },
    isBase64: true,
  };
}
