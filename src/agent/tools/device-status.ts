/** The tool `device_status`: how the machine is doing. */
import { statfs } from "node:fs/promises";
import { arch, availableParallelism, freemem, homedir, hostname, loadavg, networkInterfaces, release, totalmem, uptime } from "node:os";
import { z } from "zod";
import type { BuiltinTool } from "../types.ts";
import { READS } from "./annotations.ts";
import { inputSchema, readArguments } from "./arguments.ts";
import { readBattery } from "./battery.ts";
import { thisHost } from "./find-program.ts";

const Arguments = z.strictObject({});
const number = { type: "number" };
const text = { type: "string" };
const OUTPUT = {
  type: "object",
  properties: {
    system: {
      type: "object",
      properties: { platform: text, release: text, architecture: text, hostname: text },
      required: ["platform", "release", "architecture", "hostname"],
    },
    uptimeSeconds: number,
    load: {
      type: "object",
      description: "average number of waiting processes over 1, 5 and 15 minutes; absent on Windows, which keeps none",
      properties: { one: number, five: number, fifteen: number, processors: number },
      required: ["processors"],
    },
    memory: { type: "object", properties: { totalBytes: number, freeBytes: number }, required: ["totalBytes", "freeBytes"] },
    disk: {
      type: ["object", "null"],
      description: "the file system of the user's home",
      properties: { path: text, totalBytes: number, freeBytes: number },
      required: ["path", "totalBytes", "freeBytes"],
    },
    battery: { type: ["object", "null"], properties: { percent: number, isPlugged: { type: "boolean" } }, required: ["percent"] },
    network: {
      type: "array",
      items: { type: "object", properties: { name: text, addresses: { type: "array", items: text } }, required: ["name", "addresses"] },
    },
  },
  required: ["system", "uptimeSeconds", "load", "memory", "disk", "battery", "network"],
};

/** The tool; it works everywhere, and leaves out what a system does not tell. */
export function deviceStatusTool(): BuiltinTool {
  return {
    name: "device_status",
    title: "Device status",
    description: "Tells how the device is doing: load, memory, disk, battery, network and uptime.",
    inputSchema: inputSchema(Arguments),
    outputSchema: OUTPUT,
    annotations: READS,
    run: async (args, context) => {
      readArguments(Arguments, args);
      const battery = await readBattery(thisHost(), context);
      const status = {
        system: { platform: process.platform, release: release(), architecture: arch(), hostname: hostname() },
        uptimeSeconds: Math.round(uptime()),
        load: { ...loads(), processors: availableParallelism() },
        memory: { totalBytes: totalmem(), freeBytes: freemem() },
        disk: await disk(homedir()),
        battery: battery ?? null,
        network: network(),
      };
      return { content: [{ type: "text", text: JSON.stringify(status) }], structuredContent: status };
    },
  };
}

function loads(): { one?: number; five?: number; fifteen?: number } {
  if (process.platform === "win32") return {};
  const [one = 0, five = 0, fifteen = 0] = loadavg().map((load) => Math.round(load * 100) / 100);
  return { one, five, fifteen };
}

async function disk(path: string): Promise<{ path: string; totalBytes: number; freeBytes: number } | null> {
  try {
    const { bsize, blocks, bavail } = await statfs(path);
    return { path, totalBytes: bsize * blocks, freeBytes: bsize * bavail };
  } catch {
    return null; // The home may be gone, or the system does not tell.
  }
}

/** Addresses by interface, without those that only this machine sees. */
function network(): { name: string; addresses: string[] }[] {
  return Object.entries(interfaces())
    .map(([name, entries]) => ({ name, addresses: (entries ?? []).filter((entry) => !entry.internal).map((entry) => entry.address) }))
    .filter(({ addresses }) => addresses.length > 0);
}

/** Android forbids the question to newer apps, and Node throws then. */
function interfaces(): ReturnType<typeof networkInterfaces> {
  try {
    return networkInterfaces();
  } catch {
    return {};
  }
}
