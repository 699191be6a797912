/**
 * The agent's terminal: shows questions and reads what is typed, line by line. A line that no question waits for
 * answers none. `stop` and `resume` work at any time.
 */
import type { Readable } from "node:stream";
import { isTheWord, questionLines, type Answer, type Asker, type Question } from "./question.ts";

export interface TerminalSurroundings {
  input: Readable;
  write: (line: string) => void;
  /** A question is open, or the last one is over: what is typed now is seen as it is typed. */
  asking: (isOpen: boolean) => void;
  /** Somebody typed `stop` or `resume`. */
  command: (word: "stop" | "resume") => void;
}

/** Characters of a line that is read; what is longer answers nothing. */
const MAX_LINE = 1_000;

export class TerminalAsker implements Asker {
  readonly #around: TerminalSurroundings;
  readonly #onData = (chunk: Buffer | string): void => this.#read(chunk.toString());
  #line = "";
  #answer: ((typed: string) => void) | null = null;

  constructor(around: TerminalSurroundings) {
    this.#around = around;
    around.input.on("data", this.#onData);
    // A terminal that goes away leaves questions to their time limit.
    around.input.on("error", () => undefined);
  }

  async ask(question: Question, signal: AbortSignal): Promise<Answer> {
    const { write, asking } = this.#around;
    asking(true);
    for (const line of questionLines(question)) write(line);
    write(`Type ${question.word} and Enter within ${question.seconds} s to allow it; anything else refuses it.`);
    return await new Promise((resolve) => {
      const end = (answer: Answer, text: string) => {
        this.#answer = null;
        signal.removeEventListener("abort", withdraw);
        write(text);
        asking(false);
        resolve(answer);
      };
      const withdraw = () => end({ kind: "refused", why: "withdrawn" }, "The question is over; the call is not run.");
      signal.addEventListener("abort", withdraw, { once: true });
      this.#answer = (typed) => {
        if (isTheWord(question, typed)) end({ kind: "allowed" }, "Allowed.");
        else end({ kind: "refused", why: "somebody at the device said no" }, "Refused.");
      };
    });
  }

  /** Stops reading, so that the program can end. */
  close(): void {
    this.#around.input.off("data", this.#onData);
    this.#around.input.pause();
  }

  #read(text: string): void {
    const lines = (this.#line + text).split(/\r\n|\r|\n/);
    this.#line = (lines.pop() ?? "").slice(-MAX_LINE);
    for (const line of lines) this.#take(line.slice(0, MAX_LINE));
  }

  #take(line: string): void {
    const word = line.trim().toLowerCase();
    if (word === "stop" || word === "resume") this.#around.command(word);
    else this.#answer?.(line);
  }
}
