/** One request of the client on its way: which answers it still wants, and how it is ended. */
import { failureToRpcError, ApiError, RPC, type Outcome } from "../../errors.ts";
import { ExchangeError } from "../../agent/upstreams/http-exchange.ts";
import { cleanText } from "../../policy/clean-text.ts";
import { idAndMethod, type ClientMessage } from "./message.ts";

export class Flight {
  readonly message: ClientMessage;
  readonly #controller = new AbortController();
  readonly #wanted: Set<string>;
  /** The request left, so that the relay can be told about it. */
  isSent = false;
  isCancelled = false;
  /** Resolves when nothing more is written for it. */
  readonly done: Promise<void>;
  /** Says so. */
  finish: () => void = () => undefined;

  constructor(message: ClientMessage) {
    this.message = message;
    this.#wanted = new Set(message.ids);
    this.done = new Promise((resolve) => (this.finish = resolve));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Ids without an answer. */
  get unanswered(): readonly string[] {
    return [...this.#wanted];
  }

  /** An answer to this id is written. */
  settle(id: string): void {
    this.#wanted.delete(id);
  }

  /** Nothing is awaited any more. */
  cancel(): void {
    this.isCancelled = true;
    this.#controller.abort();
  }

  /** Takes note of a message of the relay, and gives it as the client wants it: an error without an id answers the only request. */
  answer(line: Buffer): string {
    const { id, hasMethod } = idAndMethod(line);
    const [only, ...others] = this.message.ids;
    if (hasMethod) return line.toString("utf8");
    if (id !== undefined && id !== "null") {
      this.#wanted.delete(id);
      return line.toString("utf8");
    }
    if (only === undefined || others.length > 0) return line.toString("utf8");
    this.#wanted.delete(only);
    const { error } = JSON.parse(line.toString("utf8")) as { error?: unknown };
    return `{"jsonrpc":"2.0","id":${only},"error":${JSON.stringify(error ?? { code: RPC.internalError, message: "The relay gave an empty answer." })}}`;
  }
}

/** A failure on the way as a JSON-RPC error object. */
export function errorOf(error: unknown, isSent: boolean): { code: number; message: string; data?: unknown } {
  if (error instanceof ApiError) return { code: RPC.invalidRequest, message: error.message, data: { reason: error.code } };
  if (error instanceof RangeError) return failureToRpcError({ reason: "too_large", outcome: "unknown" });
  const neverSent = error instanceof ExchangeError ? error.neverSent : !isSent;
  const outcome: Outcome = neverSent ? "not_started" : "unknown";
  const why = error instanceof ExchangeError ? ` (${cleanText(error.code, 64)})` : "";
  const message = neverSent
    ? `The relay cannot be reached${why}. \`longline doctor\` says what to do.`
    : `The connection to the relay was lost${why}. Check what the tool did before calling again.`;
  return failureToRpcError({ reason: "tunnel_lost", outcome, message });
}

/** An answer that is no JSON-RPC as an error object: the relay's refusals below MCP, or a proxy's page. */
export function refusalOf(status: number, body: string): { code: number; message: string; data: { status: number } } {
  const said = /"message"\s*:\s*"((?:[^"\\]|\\.)*)"/.exec(body)?.[1];
  const message = `The relay answered with HTTP ${status}${said === undefined ? "" : `: ${cleanText(said)}`}`;
  return { code: RPC.internalError, message, data: { status } };
}
