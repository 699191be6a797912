/** The hand-written upstream of one era, and what it witnessed. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually, temporaryDir } from "./processes.ts";

const SERVER = join(import.meta.dirname, "../fixtures/upstream/raw.mjs");

/** One line of what happened to a server. */
export interface Seen {
  pid: number;
  what: string;
  [key: string]: unknown;
}

export interface RawUpstream {
  /** Arguments of `longline agent` that run it. */
  agent: string[];
  seen(what: string): Promise<Seen[]>;
  /** Waits until so many things of a kind were seen. */
  sees(what: string, count?: number): Promise<Seen[]>;
  stop(): Promise<void>;
}

/** Prepares a server; the agent starts it, in as many processes as isolation asks for. */
export async function rawUpstream(era: "legacy" | "modern", more: readonly string[] = []): Promise<RawUpstream> {
  const directory = await temporaryDir();
  const file = join(directory.path, "witness");
  const seen = async (what: string): Promise<Seen[]> => {
    const text = await readFile(file, "utf8").catch(() => "");
    const lines = text.split("\n").filter((line) => line !== "");
    return lines.map((line) => JSON.parse(line) as Seen).filter((line) => line.what === what);
  };
  return {
    agent: [...more, "--", process.execPath, SERVER, "--era", era, "--witness", file],
    seen,
    sees: (what, count = 1) =>
      eventually(`the server to see ${count} × ${what}`, async () => {
        const found = await seen(what);
        return found.length >= count && found;
      }),
    stop: () => directory.remove(),
  };
}
