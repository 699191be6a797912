/** The tool `screenshot`: the whole screen as a PNG, within the sides and bytes that the config allows. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { TOOLS } from "../../limits.ts";
import type { BuiltinContext, BuiltinTool } from "../types.ts";
import { ToolError } from "../upstreams/builtin.ts";
import { READS } from "./annotations.ts";
import { inputSchema, readArguments } from "./arguments.ts";
import { FILE, type Capture } from "./capture.ts";
import { runHelper } from "./helper.ts";
import { reduce, type Pixels } from "./pixels.ts";
import { pngSize, readPng, writePng } from "./png.ts";
import { readXwd, xwdSize } from "./xwd.ts";

export interface ScreenshotSettings {
  /** Pixels of the longer side. */
  maxSide: number;
  /** Bytes of the PNG. */
  maxBytes: number;
}

/** A picture ready to be sent. */
interface Shot {
  png: Uint8Array;
  width: number;
  height: number;
}

const integer = { type: "integer" };
const OUTPUT = {
  type: "object",
  properties: { width: integer, height: integer, screenWidth: integer, screenHeight: integer, bytes: integer },
  required: ["width", "height", "screenWidth", "screenHeight", "bytes"],
};

/** The tool, with this machine's way to capture. */
export function screenshotTool(capture: Capture, settings: ScreenshotSettings): BuiltinTool {
  const Arguments = z.strictObject({
    maxSide: z
      .int()
      .min(TOOLS.minScreenshotSide)
      .max(settings.maxSide)
      .optional()
      .describe("Pixels of the longer side at most; larger screens are scaled down"),
  });
  return {
    name: "screenshot",
    title: "Screenshot",
    description: "Returns a picture of the device's whole screen. `screenWidth` and `screenHeight` tell its real size.",
    inputSchema: inputSchema(Arguments),
    outputSchema: OUTPUT,
    annotations: READS,
    run: async (args, context) => {
      const { maxSide } = readArguments(Arguments, args);
      const captured = await take(capture, context);
      const screen = sizeOf(captured, capture);
      const shot = await fit(captured, capture, screen, { ...settings, maxSide: maxSide ?? settings.maxSide });
      return {
        content: [{ type: "image", data: Buffer.from(shot.png).toString("base64"), mimeType: "image/png" }],
        structuredContent: {
          width: shot.width,
          height: shot.height,
          screenWidth: screen.width,
          screenHeight: screen.height,
          bytes: shot.png.length,
        },
      };
    },
  };
}

async function take(capture: Capture, context: BuiltinContext): Promise<Buffer> {
  if (capture.output !== "file") {
    const bytes = await runHelper(capture, context, TOOLS.captureBytes);
    return capture.output === "base64" ? Buffer.from(bytes.toString("latin1"), "base64") : bytes;
  }
  const directory = await mkdtemp(join(tmpdir(), "longline-screen-"));
  try {
    const path = join(directory, "screen.png");
    await runHelper(
      { command: capture.command, args: capture.args.map((arg) => arg.replace(FILE, path)) },
      context,
      TOOLS.helperMessageBytes,
    );
    return await readFile(path).catch(() => {
      throw new ToolError(`${capture.command} wrote no picture. The system may want permission to record the screen.`);
    });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function sizeOf(captured: Buffer, capture: Capture): { width: number; height: number } {
  const size = reading(capture, () => (capture.output === "xwd" ? xwdSize(captured) : pngSize(captured)));
  if (size === undefined) throw new ToolError(`${capture.command} gave no picture.`);
  if (size.width * size.height > TOOLS.capturePixels) throw new ToolError("The screen has more pixels than can be taken.");
  return size;
}

/** As it is when it fits; else smaller and smaller until it does. */
async function fit(
  captured: Buffer,
  capture: Capture,
  screen: { width: number; height: number },
  settings: ScreenshotSettings,
): Promise<Shot> {
  const isPng = capture.output !== "xwd";
  const fits = Math.max(screen.width, screen.height) <= settings.maxSide && captured.length <= settings.maxBytes;
  if (isPng && fits) return { png: captured, ...screen };
  const picture = reading(capture, () => (isPng ? readPng(captured) : readXwd(captured)));
  let side = Math.min(settings.maxSide, Math.max(screen.width, screen.height));
  for (;;) {
    const smaller: Pixels = reduce(picture, side);
    const png = await writePng(smaller);
    if (png.length <= settings.maxBytes) return { png, width: smaller.width, height: smaller.height };
    if (side <= TOOLS.minScreenshotSide) throw new ToolError(`The screen does not fit into ${settings.maxBytes} bytes.`);
    // Bytes go with the area; a little less, so that few rounds are needed.
    side = Math.max(TOOLS.minScreenshotSide, Math.floor(side * Math.min(0.9, 0.95 * Math.sqrt(settings.maxBytes / png.length))));
  }
}

/** A damaged picture is the capture program's failure. */
function reading<T>(capture: Capture, read: () => T): T {
  try {
    return read();
  } catch {
    throw new ToolError(`${capture.command} gave a picture that cannot be read.`);
  }
}
