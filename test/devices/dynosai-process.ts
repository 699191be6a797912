/** Runs the reference stdio server under an agent, with its database and what its processes were told. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryDir } from "../support/processes.ts";
import type { Json } from "./json.ts";

const SERVER = join(import.meta.dirname, "dynosai.ts");

export interface DynosaiUpstream {
  /** Arguments of `longline agent` that run it. */
  agent: string[];
  /** Every line its processes read, in order: a message, or text that is none. */
  told(): Promise<{ pid: number; line: Json | string }[]>;
  stop(): Promise<void>;
}

/** A new project; the agent starts the processes. */
export async function dynosaiUpstream(): Promise<DynosaiUpstream> {
  const directory = await temporaryDir();
  const witness = join(directory.path, "witness");
  return {
    agent: ["--", process.execPath, SERVER, join(directory.path, "project.json"), witness],
    told: async () => {
      const text = await readFile(witness, "utf8").catch(() => "");
      const lines = text.split("\n").filter((line) => line !== "");
      return lines.map((line) => JSON.parse(line) as { pid: number; line: Json | string });
    },
    stop: () => directory.remove(),
  };
}
