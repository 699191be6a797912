/** The sections `[builtin.NAME]` of the configuration: built-in tools, each off until it is named. */
import { z } from "zod";
import { TOOLS } from "../../limits.ts";

const Shell = z.strictObject({
  /** Working directory; the user's home unless given. */
  cwd: z.string().min(1).optional(),
  timeoutSeconds: z.number().positive().max(TOOLS.maxShellSeconds).default(TOOLS.shellSeconds),
  /** Bytes of each of the two outputs. */
  maxOutputBytes: z.int().positive().max(TOOLS.maxShellOutputBytes).default(TOOLS.shellOutputBytes),
  /** Added to the allow-listed environment. */
  env: z.record(z.string().min(1), z.string()).optional(),
});

const Screenshot = z.strictObject({
  /** Pixels of the longer side. */
  maxSide: z.int().min(TOOLS.minScreenshotSide).max(TOOLS.maxScreenshotSide).default(TOOLS.screenshotSide),
  maxBytes: z.int().min(TOOLS.minScreenshotBytes).max(TOOLS.maxScreenshotBytes).default(TOOLS.screenshotBytes),
});

const Plain = z.strictObject({});

/** What is under `[builtin]`: the tools that are named, with their settings. */
export const ToolsSection = z.strictObject({
  shell: Shell.optional(),
  screenshot: Screenshot.optional(),
  clipboard: Plain.optional(),
  open_url: Plain.optional(),
  device_status: Plain.optional(),
  support_bundle: Plain.optional(),
});
export type ToolsSection = z.infer<typeof ToolsSection>;

/** Names of the sections. */
export type ToolName = keyof ToolsSection;
