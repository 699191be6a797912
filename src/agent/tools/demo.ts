/** A few harmless tools, so that a device has something to offer before it has a tool server of its own. */
import { availableParallelism, freemem, loadavg, totalmem, uptime } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { BuiltinTool } from "../types.ts";
import { ToolError } from "../upstreams/builtin.ts";

const READ_ONLY = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };
const MAX_COUNT = 100;
const MAX_PAUSE_MS = 1_000;

/** The demo tools: `echo`, `device_status`, `current_time`, `count`. None tells who or where the device is. */
export function demoTools(): BuiltinTool[] {
  return [echo(), deviceStatus(), currentTime(), count()];
}

function echo(): BuiltinTool {
  return {
    name: "echo",
    title: "Echo",
    description: "Returns the text it is given.",
    inputSchema: { type: "object", properties: { text: { type: "string", description: "Text to return" } }, required: ["text"] },
    outputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    annotations: READ_ONLY,
    run: ({ text }) => {
      if (typeof text !== "string") throw new ToolError("text must be a string.");
      return { content: [{ type: "text", text }], structuredContent: { text } };
    },
  };
}

function deviceStatus(): BuiltinTool {
  const number = { type: "number" };
  return {
    name: "device_status",
    title: "Device status",
    description: "Tells how the device is doing: platform, uptime, load and memory.",
    inputSchema: { type: "object", properties: {} },
    outputSchema: {
      type: "object",
      properties: {
        platform: { type: "string" },
        architecture: { type: "string" },
        uptimeSeconds: number,
        processors: number,
        loadAverage: { type: "array", items: number },
        memoryTotalBytes: number,
        memoryFreeBytes: number,
      },
      required: ["platform", "architecture", "uptimeSeconds", "processors", "loadAverage", "memoryTotalBytes", "memoryFreeBytes"],
    },
    annotations: { ...READ_ONLY, idempotentHint: false },
    run: () => {
      const status = {
        platform: process.platform,
        architecture: process.arch,
        uptimeSeconds: Math.round(uptime()),
        processors: availableParallelism(),
        loadAverage: loadavg().map((load) => Math.round(load * 100) / 100),
        memoryTotalBytes: totalmem(),
        memoryFreeBytes: freemem(),
      };
      return { content: [{ type: "text", text: JSON.stringify(status) }], structuredContent: status };
    },
  };
}

function currentTime(): BuiltinTool {
  return {
    name: "current_time",
    title: "Current time",
    description: "Tells the device's time in UTC.",
    inputSchema: { type: "object", properties: {} },
    outputSchema: { type: "object", properties: { utc: { type: "string" }, epochMs: { type: "number" } }, required: ["utc", "epochMs"] },
    annotations: { ...READ_ONLY, idempotentHint: false },
    run: () => {
      const now = new Date();
      const time = { utc: now.toISOString(), epochMs: now.getTime() };
      return { content: [{ type: "text", text: time.utc }], structuredContent: time };
    },
  };
}

function count(): BuiltinTool {
  return {
    name: "count",
    title: "Count",
    description: "Counts to a number and reports each step as progress.",
    inputSchema: {
      type: "object",
      properties: {
        to: { type: "integer", minimum: 1, maximum: MAX_COUNT, default: 5 },
        pauseMs: { type: "integer", minimum: 0, maximum: MAX_PAUSE_MS, default: 100 },
      },
    },
    outputSchema: { type: "object", properties: { counted: { type: "integer" } }, required: ["counted"] },
    annotations: READ_ONLY,
    run: async (args, context) => {
      const to = wholeNumber(args["to"] ?? 5, "to", 1, MAX_COUNT);
      const pauseMs = wholeNumber(args["pauseMs"] ?? 100, "pauseMs", 0, MAX_PAUSE_MS);
      for (let step = 1; step <= to; step += 1) {
        await sleep(pauseMs, undefined, { signal: context.signal });
        context.progress(step, to, `${step} of ${to}`);
      }
      return { content: [{ type: "text", text: `Counted to ${to}.` }], structuredContent: { counted: to } };
    },
  };
}

function wholeNumber(value: unknown, name: string, min: number, max: number): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
  throw new ToolError(`${name} must be a whole number from ${min} to ${max}.`);
}
