/** Tells a command's output while it runs: gathered for a moment, as progress or as log notifications, whichever is wanted. */
import { StringDecoder } from "node:string_decoder";
import { TOOLS } from "../../limits.ts";
import type { BuiltinContext } from "../types.ts";

type Name = "stdout" | "stderr";

export class OutputStream {
  readonly #context: BuiltinContext;
  readonly #decoders = { stdout: new StringDecoder("utf8"), stderr: new StringDecoder("utf8") };
  #parts: { name: Name; text: string }[] = [];
  #gathered = 0;
  /** Characters told so far: progress has to grow. */
  #told = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(context: BuiltinContext) {
    this.#context = context;
  }

  add(name: Name, chunk: Buffer): void {
    this.#push(name, this.#decoders[name].write(chunk));
    if (this.#gathered >= TOOLS.streamBytes) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), TOOLS.streamMs);
  }

  /** Tells what is left. */
  end(): void {
    for (const name of ["stdout", "stderr"] as const) this.#push(name, this.#decoders[name].end());
    this.#flush();
  }

  /** Tells nothing more. */
  close(): void {
    clearTimeout(this.#timer);
    this.#parts = [];
  }

  #push(name: Name, text: string): void {
    if (text === "") return;
    const last = this.#parts.at(-1);
    if (last?.name === name) last.text += text;
    else this.#parts.push({ name, text });
    this.#gathered += text.length;
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const { name, text } of this.#parts) {
      // A pipe gives up to 64 KiB at once; a notification stays small.
      for (let at = 0; at < text.length; at += TOOLS.streamBytes) this.#tell(name, text.slice(at, at + TOOLS.streamBytes));
    }
    this.#parts = [];
    this.#gathered = 0;
  }

  #tell(name: Name, text: string): void {
    this.#told += text.length;
    this.#context.progress(this.#told, undefined, text);
    this.#context.log("info", { stream: name, text });
  }
}
