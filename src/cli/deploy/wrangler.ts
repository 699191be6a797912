/** Runs wrangler, Cloudflare's own command, which holds the login: this command never sees a Cloudflare credential. */
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { ApiError } from "../../errors.ts";

/** One command to run: the program and what comes before wrangler's own arguments. */
export type WranglerCommand = readonly [program: string, ...args: string[]];

/** What a run printed, and how it ended. */
export interface WranglerRun {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Lines of wrangler's stderr that a failure shows. */
const SHOWN_LINES = 12;

/** The wrangler that is installed beside this package; else the newest of version 4, through npx. */
export function installedWrangler(): WranglerCommand {
  try {
    return [process.execPath, createRequire(import.meta.url).resolve("wrangler/bin/wrangler.js")];
  } catch {
    // Not installed: it is a large package that only this command needs.
    return ["npx", "--yes", "wrangler@4"];
  }
}

export class Wrangler {
  readonly #command: WranglerCommand;
  readonly #cwd: string;
  readonly #env: Readonly<Record<string, string | undefined>>;

  constructor(command: WranglerCommand, cwd: string, env: Readonly<Record<string, string | undefined>>) {
    this.#command = command;
    this.#cwd = cwd;
    this.#env = env;
  }

  /** Runs a command to its end; throws with the last lines of its output when it fails. */
  async run(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.try(args);
    if (code === 0) return stdout;
    throw new ApiError("failed", `\`wrangler ${args.slice(0, 3).join(" ")}\` failed: ${lastLines(stderr === "" ? stdout : stderr)}`);
  }

  /** Runs a command that prints JSON. Text before the value, such as a notice of a newer version, is skipped. */
  async json<T>(schema: z.ZodType<T>, ...args: string[]): Promise<T> {
    const text = await this.run(...args);
    const parsed = schema.safeParse(parseJson(text));
    if (parsed.success) return parsed.data;
    throw new ApiError("failed", `\`wrangler ${args.slice(0, 3).join(" ")}\` answered in a way that is not known here. Update wrangler.`);
  }

  /** Deploys, and gives the origins on which the Worker answers, as far as wrangler names them. */
  async deploy(...args: string[]): Promise<string[]> {
    const dir = await mkdtemp(join(tmpdir(), "longline-deploy-"));
    const file = join(dir, "output.ndjson");
    try {
      const { code, stdout, stderr } = await this.try(["deploy", ...args], { WRANGLER_OUTPUT_FILE_PATH: file });
      if (code !== 0) throw new ApiError("failed", `\`wrangler deploy\` failed: ${lastLines(stderr === "" ? stdout : stderr)}`);
      return originsOf(await readFile(file, "utf8").catch(() => ""));
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  }

  /** Runs a command to its end, whatever that is. */
  async try(args: readonly string[], env: Record<string, string> = {}): Promise<WranglerRun> {
    const [program, ...before] = this.#command;
    const child = spawn(program, [...before, ...args], {
      cwd: this.#cwd,
      // Not asked anything: what is to be confirmed was confirmed here.
      env: { ...this.#env, CI: "1", WRANGLER_SEND_METRICS: "false", NO_COLOR: "1", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const output = { stdout: "", stderr: "" };
    for (const stream of ["stdout", "stderr"] as const) {
      child[stream].setEncoding("utf8").on("data", (text: string) => {
        output[stream] += text;
      });
    }
    const { promise, resolve, reject } = Promise.withResolvers<number | null>();
    child.once("error", () => reject(new ApiError("failed", `${program} could not be started. Install wrangler: npm install wrangler@4.`)));
    child.once("close", resolve);
    return { code: await promise, ...output };
  }
}

const Line = z.looseObject({ type: z.string(), targets: z.array(z.string()).optional() });

/** The origins in what wrangler wrote about a deploy (one JSON value a line). */
export function originsOf(text: string): string[] {
  const lines = text.split("\n").map((line) => Line.safeParse(parseJson(line)));
  return lines.flatMap((line) => (line.success && line.data.type === "deploy" ? (line.data.targets ?? []) : [])).flatMap(originOf);
}

/** A target is an address, a host on workers.dev, or something else that the Worker is wired to, such as a schedule. */
function originOf(target: string): string[] {
  if (/^[a-z0-9.-]+\.workers\.dev$/.test(target)) return [`https://${target}`];
  return /^https?:/.test(target) && URL.canParse(target) ? [new URL(target).origin] : [];
}

function parseJson(text: string): unknown {
  for (const start of [0, text.search(/[[{]/)]) {
    try {
      return JSON.parse(text.slice(Math.max(0, start)));
    } catch {
      // Something stands before the value; or it is none, which the caller finds.
    }
  }
  return undefined;
}

function lastLines(text: string): string {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  return lines.slice(-SHOWN_LINES).join(" ");
}
