/**
 * What an agent shows a person on stderr: a line for each thing that happens, and on a terminal a state line below them
 * that stays. Without a terminal there are lines only, as a log wants them.
 */
import { cleanText } from "../agent/clean-text.ts";
import type { AgentEvent } from "../agent/types.ts";
import { CLI, TEXT } from "../limits.ts";
import { describeEvent } from "./agent-log.ts";
import type { Terminal } from "./terminal.ts";

interface Running {
  /** What runs and for whom, cleaned. */
  what: string;
  startedAt: number;
  /** How far it is, cleaned; when that was last a line of its own. */
  step: string;
  toldAt: number;
}

const CLEAR = "\r\u001b[2K";

export class AgentScreen {
  readonly #terminal: Terminal;
  readonly #now: () => number;
  readonly #running = new Map<string, Running>();
  /** Writes without a line break; undefined where there is no terminal. */
  readonly #paint: ((text: string) => void) | undefined;
  #state = "starting";
  #tools = "";
  /** What stands in the state line; undefined when it is not there. */
  #painted: string | undefined;
  #isHeld = false;
  #ticker: ReturnType<typeof setInterval> | undefined;

  constructor(terminal: Terminal, now: () => number = Date.now) {
    this.#terminal = terminal;
    this.#now = now;
    this.#paint = terminal.errColumns === undefined ? undefined : terminal.paint;
    if (this.#paint !== undefined) this.#ticker = setInterval(() => this.#repaint(), CLI.repaintMs).unref();
  }

  /** Shows an event. */
  event(event: AgentEvent): void {
    const line = this.#lineOf(event);
    if (event.type === "online") this.#state = `online as ${cleanText(event.device)}`;
    else if (event.type === "offline" || event.type === "connecting") this.#state = event.type;
    else if (event.type === "catalogue") this.#tools = `${event.tools} ${event.tools === 1 ? "tool" : "tools"}`;
    if (line !== undefined) this.line(line);
    else this.#repaint();
  }

  /** Shows a line above the state line. */
  line(text: string): void {
    this.#clear();
    this.#terminal.err(text);
    this.#repaint();
  }

  /** Takes the state line away while somebody types, and puts it back. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (isHeld) this.#clear();
    else this.#repaint();
  }

  /** Takes the state line away. */
  close(): void {
    clearInterval(this.#ticker);
    this.#ticker = undefined;
    this.#clear();
  }

  #clear(): void {
    if (this.#painted !== undefined) this.#paint?.(CLEAR);
    this.#painted = undefined;
  }

  #lineOf(event: AgentEvent): string | undefined {
    if (event.type === "call") return this.#begin(event);
    if (event.type === "call_end") return this.#end(event);
    if (event.type === "progress") return this.#progress(event);
    return describeEvent(event);
  }

  #begin({ callId, method, target, label }: Extract<AgentEvent, { type: "call" }>): string {
    // A tool call is what nearly all calls are: its name says enough.
    const name = target === undefined ? method : method === "tools/call" ? target : `${method} ${target}`;
    const what = `${cleanText(name, TEXT.label)} for ${cleanText(label, TEXT.label)}`;
    this.#running.set(callId, { what, startedAt: this.#now(), step: "", toldAt: 0 });
    return `call ${what}`;
  }

  #end(event: Extract<AgentEvent, { type: "call_end" }>): string {
    const call = this.#running.get(event.callId);
    if (call === undefined) return describeEvent(event);
    this.#running.delete(event.callId);
    const word = event.outcome === "result" ? "done" : cleanText(event.outcome);
    return `${word} ${call.what} after ${duration(this.#now() - call.startedAt)}`;
  }

  /** A terminal shows progress in its state line; a log gets a line now and then. */
  #progress({ callId, progress, total, message }: Extract<AgentEvent, { type: "progress" }>): string | undefined {
    const call = this.#running.get(callId);
    if (call === undefined) return undefined;
    const text = message === undefined ? "" : ` ${cleanText(message, TEXT.label)}`;
    call.step = `${total === undefined ? progress : `${progress}/${total}`}${text}`;
    if (this.#paint !== undefined || this.#now() - call.toldAt < CLI.progressMs) return undefined;
    call.toldAt = this.#now();
    return `step ${call.what}: ${call.step}`;
  }

  #repaint(): void {
    if (this.#paint === undefined || this.#ticker === undefined || this.#isHeld) return;
    const calls = [...this.#running.values()].map(
      ({ what, startedAt, step }) => `${what} ${duration(this.#now() - startedAt)}${step === "" ? "" : ` ${step}`}`,
    );
    const parts = [this.#state, this.#tools, calls.length > 1 ? `${calls.length} calls` : "", ...calls].filter((part) => part !== "");
    // One column stays free, so that no terminal wraps the line.
    const text = parts.join(" | ").slice(0, Math.max(1, (this.#terminal.errColumns ?? CLI.columns) - 1));
    // Painted only when it is another one: what somebody types stands behind it.
    if (text === this.#painted) return;
    this.#painted = text;
    this.#paint(`${CLEAR}${text}`);
  }
}

function duration(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}
