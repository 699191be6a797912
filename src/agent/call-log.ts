/**
 * The device's own log of what was run and refused, with who asked: JSON lines in the state directory, readable by
 * its owner only. When it is full it becomes `calls.log.1`, and that one's predecessor is gone. A failing disk costs
 * a warning, never a call.
 */
import { closeSync, fstatSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { POLICY } from "../limits.ts";
import type { Caller } from "../tunnel/frames.ts";

/** A call as the log names it. */
export interface LoggedCall {
  callId: string;
  method: string;
  target?: string | undefined;
  caller: Caller;
  /** Only when the config asks for them. */
  arguments?: string;
}

export class CallLog {
  readonly path: string;
  readonly #maxBytes: number;
  readonly #now: () => number;
  readonly #warn: (message: string) => void;
  /** Epoch ms of the start of calls that run. */
  readonly #running = new Map<string, number>();
  #file: number | null = null;
  #bytes = 0;
  #hasWarned = false;

  constructor(stateDir: string, warn: (message: string) => void, options: { maxBytes?: number; now?: () => number } = {}) {
    this.path = join(stateDir, "calls.log");
    this.#warn = warn;
    this.#maxBytes = options.maxBytes ?? POLICY.logBytes;
    this.#now = options.now ?? Date.now;
  }

  /** It is about to be run; `rule` says why it may. */
  started(call: LoggedCall, rule: string): void {
    this.#running.set(call.callId, this.#now());
    this.#line({ event: "run", ...call, rule });
  }

  refused(call: LoggedCall, rule: string, why: string): void {
    this.#line({ event: "refused", ...call, rule, why });
  }

  /** A call is over; one that was not started here is none of its business. */
  ended(callId: string, outcome: string): void {
    const startedAt = this.#running.get(callId);
    if (startedAt === undefined) return;
    this.#running.delete(callId);
    this.#line({ event: "end", callId, outcome, ms: this.#now() - startedAt });
  }

  /** Its last bytes, from the beginning of a line. */
  tail(maxBytes: number): string {
    try {
      const bytes = readFileSync(this.path);
      if (bytes.length <= maxBytes) return bytes.toString("utf8");
      const text = bytes.subarray(bytes.length - maxBytes).toString("utf8");
      return text.slice(text.indexOf("\n") + 1);
    } catch {
      return ""; // Nothing was run yet.
    }
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  #line(entry: Record<string, unknown>): void {
    const line = Buffer.from(`${JSON.stringify({ at: new Date(this.#now()).toISOString(), ...entry })}\n`);
    try {
      const file = this.#open(line.length);
      writeSync(file, line);
      this.#bytes += line.length;
    } catch (error) {
      if (this.#hasWarned) return;
      this.#hasWarned = true;
      const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
      this.#warn(`the log of calls cannot be written (${code})`);
    }
  }

  /** The file, with room for a line. */
  #open(bytes: number): number {
    if (this.#file === null) {
      this.#file = openSync(this.path, "a", 0o600);
      this.#bytes = fstatSync(this.#file).size;
    }
    if (this.#bytes === 0 || this.#bytes + bytes <= this.#maxBytes) return this.#file;
    closeSync(this.#file);
    this.#file = null;
    renameSync(this.path, `${this.path}.1`);
    this.#file = openSync(this.path, "a", 0o600);
    this.#bytes = 0;
    return this.#file;
  }
}
