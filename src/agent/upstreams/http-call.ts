/**
 * One raw request to a Streamable HTTP upstream, from POST to outcome: a JSON body, an SSE stream, or a legacy
 * stream that the server closed early and that is taken up again by its last event id.
 */
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { UPSTREAM } from "../../limits.ts";
import { failure } from "../failure.ts";
import { ExchangeError, mediaType, openExchange, readBody } from "./http-exchange.ts";
import type { RawListener, RawOutcome } from "./lane.ts";
import { readMessages, type UpstreamMessage } from "./message.ts";
import { SseParser } from "./sse.ts";

export interface HttpCallOptions {
  id: string;
  url: URL;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** A legacy server may close the stream and expect a GET with the last event id (MCP 2025-11-25, "Resumability"). */
  mayResume: boolean;
  signal: AbortSignal;
  listener: RawListener;
}

/** `data.why` of a call whose session the upstream does not know: it has not begun and can be sent again on a new one. */
export const SESSION_EXPIRED = "session_expired";

/** JSON-RPC 2.0 §5.1. */
const METHOD_NOT_FOUND = -32601;

function failed(text: string, outcome: "not_started" | "unknown" = "unknown"): RawOutcome {
  return { kind: "failed", failure: failure("upstream_failed", outcome, text) };
}

const TOO_LARGE: RawOutcome = {
  kind: "failed",
  failure: failure("too_large", "unknown", `The tool server sent more than ${UPSTREAM.maxMessageBytes} bytes in one message.`, {
    size: UPSTREAM.maxMessageBytes + 1,
    cap: UPSTREAM.maxMessageBytes,
  }),
};

const EXPIRED: RawOutcome = {
  kind: "failed",
  failure: failure("upstream_failed", "not_started", "The tool server's session has expired.", { why: SESSION_EXPIRED }),
};

/** An answer without a result: what its status says to whoever has to mend it. */
function refused(status: number): RawOutcome {
  if (status === 401 || status === 403) {
    return failed(`The tool server refused the agent's credentials (HTTP ${status}). Check its headers file.`, "not_started");
  }
  if (status === 404 || status === 405) {
    const text = `The tool server has no MCP endpoint at its address (HTTP ${status}). Check the URL, and that the endpoint is switched on.`;
    return failed(text, "not_started");
  }
  return failed(`The tool server answered with HTTP ${status} and no result.`);
}

export class HttpCall {
  readonly #options: HttpCallOptions;
  #outcome: RawOutcome | null = null;
  #lastEventId: string | undefined;
  #retryMs: number = UPSTREAM.retryMs;

  constructor(options: HttpCallOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  async run(): Promise<RawOutcome> {
    const { url, headers, body, signal } = this.#options;
    try {
      const response = await openExchange({ url, method: "POST", headers, body }, signal);
      return await this.#answer(response);
    } catch (error) {
      if (error instanceof RangeError) return TOO_LARGE;
      if (error instanceof ExchangeError) {
        return failed(`The tool server could not be reached (${error.code}).`, error.neverSent ? "not_started" : "unknown");
      }
      return failed("The connection to the tool server was lost.");
    }
  }

  async #answer(response: IncomingMessage): Promise<RawOutcome> {
    const status = response.statusCode ?? 0;
    if (mediaType(response) === "text/event-stream" && status === 200) return await this.#stream(response);
    const outcome = this.#find(await readBody(response));
    // In a session 404 says that it is gone, unless the body says that the method is unknown.
    const isUnknownMethod = outcome?.kind === "error" && outcome.code === METHOD_NOT_FOUND;
    if (status === 404 && this.#options.headers["mcp-session-id"] !== undefined && !isUnknownMethod) return EXPIRED;
    return outcome ?? refused(status);
  }

  #find(bytes: Buffer): RawOutcome | null {
    for (const { message } of readMessages(bytes) ?? []) {
      const outcome = this.#message(message);
      if (outcome) return outcome;
    }
    return null;
  }

  async #stream(first: IncomingMessage): Promise<RawOutcome> {
    let response = first;
    for (;;) {
      await this.#readStream(response);
      if (this.#outcome) return this.#outcome;
      if (!this.#options.mayResume || this.#lastEventId === undefined)
        return failed("The tool server closed the stream before the result.");
      await sleep(this.#retryMs, undefined, { signal: this.#options.signal });
      response = await this.#resume(this.#lastEventId);
      if (response.statusCode !== 200) {
        response.resume();
        return failed(`The tool server closed the stream and refused to continue it (HTTP ${response.statusCode ?? 0}).`);
      }
    }
  }

  async #readStream(response: IncomingMessage): Promise<void> {
    const parser = new SseParser(UPSTREAM.maxMessageBytes, (event) => {
      if (event.id !== undefined) this.#lastEventId = event.id;
      if (event.data.length === 0 || this.#outcome) return;
      for (const { message } of readMessages(event.data) ?? []) this.#outcome ??= this.#message(message);
    });
    try {
      for await (const chunk of response as AsyncIterable<Buffer>) {
        parser.push(chunk);
        if (this.#outcome) break;
      }
    } catch (error) {
      // A stream that broke may be resumed like one that ended; one over the cap may not.
      if (error instanceof RangeError || this.#options.signal.aborted) throw error;
    } finally {
      response.destroy();
    }
    this.#retryMs = Math.min(parser.retryMs ?? this.#retryMs, UPSTREAM.maxRetryMs);
  }

  async #resume(lastEventId: string): Promise<IncomingMessage> {
    const { url, headers, signal } = this.#options;
    const { "content-type": _type, "mcp-method": _method, ...rest } = headers;
    return await openExchange(
      { url, method: "GET", headers: { ...rest, accept: "text/event-stream", "last-event-id": lastEventId } },
      signal,
    );
  }

  /** The outcome, when the message is it. An error without an id answers the request it came for. */
  #message(message: UpstreamMessage): RawOutcome | null {
    if (message.kind === "notification") this.#options.listener.notification(message.message);
    if (message.kind === "request") this.#options.listener.request(message.message);
    if (message.kind !== "response") return null;
    if (message.id === this.#options.id) return message.outcome;
    return message.id === undefined && message.outcome.kind === "error" ? message.outcome : null;
  }
}
