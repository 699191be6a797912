/** Asks on the desktop, through a program with an entry field. */
import { runProgram, type ProcessWatch } from "../program.ts";
import { thisHost, type ToolHost } from "../tools/find-program.ts";
import { desktopEnvironment } from "../upstreams/environment.ts";
import { dialogCommand } from "./dialog-command.ts";
import { isTheWord, questionLines, type Answer, type Asker, type Question } from "./question.ts";

/** Bytes of an answer that are read. */
const ANSWER_BYTES = 4_096;

export class DialogAsker implements Asker {
  readonly #host: ToolHost;
  readonly #watch: ProcessWatch | undefined;

  constructor(host: ToolHost = thisHost(), watch?: ProcessWatch) {
    this.#host = host;
    this.#watch = watch;
  }

  async ask(question: Question, signal: AbortSignal): Promise<Answer> {
    const text = [...questionLines(question), `Type ${question.word} to allow it.`].join("\n\n");
    const dialog = dialogCommand(this.#host, text, question.seconds);
    if ("problem" in dialog) return { kind: "refused", why: dialog.problem };
    const { stdout, exitCode } = await runProgram({
      ...dialog,
      env: desktopEnvironment(this.#host.env),
      timeoutMs: question.seconds * 1_000,
      maxOutputBytes: ANSWER_BYTES,
      signal,
      watch: this.#watch,
    });
    if (exitCode === 0 && isTheWord(question, stdout.toString("utf8"))) return { kind: "allowed" };
    return { kind: "refused", why: "somebody at the device said no" };
  }
}
