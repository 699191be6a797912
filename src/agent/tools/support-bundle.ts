/**
 * The tool `support_bundle`: what somebody needs to find out why this agent misbehaves, as one compressed file. One is
 * made at a time; another call is refused meanwhile, as it would only tell the same.
 */
import { arch, release } from "node:os";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { z } from "zod";
import type { BuiltinTool } from "../types.ts";
import { ToolError } from "../upstreams/builtin.ts";
import { READS } from "./annotations.ts";
import { inputSchema, readArguments } from "./arguments.ts";

const Arguments = z.strictObject({});
const OUTPUT = {
  type: "object",
  properties: { uri: { type: "string" }, bytes: { type: "integer" }, createdAt: { type: "string" } },
  required: ["uri", "bytes", "createdAt"],
};
const gzipAsync = promisify(gzip);

/** The tool. `availability` tells which built-in tools work here; `pack` compresses. */
export function supportBundleTool(availability: () => unknown, pack: (text: string) => Promise<Buffer> = gzipAsync): BuiltinTool {
  let isBusy = false;
  return {
    name: "support_bundle",
    title: "Support bundle",
    description:
      "Collects the agent's and its tool servers' state, recent events and versions, without secrets, as JSON compressed with gzip.",
    inputSchema: inputSchema(Arguments),
    outputSchema: OUTPUT,
    annotations: READS,
    run: async (args, { agent }) => {
      readArguments(Arguments, args);
      if (isBusy) throw new ToolError("A support bundle is being made already. Call again when that call has ended.");
      isBusy = true;
      try {
        const createdAt = new Date().toISOString();
        const bundle = { createdAt, versions: versions(), builtinTools: availability(), ...agent.report() };
        const blob = await pack(JSON.stringify(bundle, undefined, 2));
        const uri = `longline://support-bundle/${createdAt.replaceAll(":", "")}.json.gz`;
        return {
          content: [{ type: "resource", resource: { uri, mimeType: "application/gzip", blob: blob.toString("base64") } }],
          structuredContent: { uri, bytes: blob.length, createdAt },
        };
      } finally {
        isBusy = false;
      }
    },
  };
}

function versions(): Record<string, string> {
  return { node: process.version, platform: process.platform, architecture: arch(), system: release() };
}
