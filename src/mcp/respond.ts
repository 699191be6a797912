/**
 * From a piece of work to an HTTP response: JSON when the answer comes first, an event stream when a notification
 * does, a second has passed or the answer comes in pieces; never a stream to a client that takes JSON only. Until the stream is committed every
 * status is still possible.
 */
import { failureToRpcError, RPC } from "../errors.ts";
import { EDGE } from "../limits.ts";
import { internalAnswer, type Answer } from "./answer.ts";
import { BrokenPayloadError } from "./call-run.ts";
import { rpcErrorText } from "./json-rpc.ts";
import { BodyWriter, EventStream, SSE_HEADERS } from "./sse.ts";

/** Sends one message before the answer; resolves when the client may take more. False when it will not be seen. */
export type Emit = (json: string) => Promise<boolean>;

export interface RespondOptions {
  /** The id errors carry that are found while the body is already on its way. */
  idText: string | undefined;
  canStream: boolean;
  keepAliveMs: number;
  signal: AbortSignal;
  waitUntil(work: Promise<unknown>): void;
  /** The client left before its answer was written; called at most once. */
  onGone(): void;
  report(error: unknown): void;
}

const JSON_HEADERS = { "content-type": "application/json" };

/** Runs the work and answers with it. The work never rejects on purpose; if it does, that is our fault. */
export async function respond(work: (emit: Emit) => Promise<Answer>, options: RespondOptions): Promise<Response> {
  return new Responder(options).run(work);
}

/** A whole answer as an HTTP response, at once. */
export function answerResponse(answer: Answer): Response {
  if (answer.http !== undefined) return answer.http;
  return new Response(typeof answer.body === "string" ? answer.body : null, {
    status: answer.status,
    headers: { ...JSON_HEADERS, ...answer.headers },
  });
}

function isInPieces(answer: Answer): boolean {
  return answer.http === undefined && answer.body !== null && typeof answer.body !== "string";
}

class Responder {
  readonly #options: RespondOptions;
  readonly #commitment = Promise.withResolvers<"commit">();
  #stream: EventStream | null = null;
  #isOver = false;
  readonly #onAbort = (): void => this.#gone();

  constructor(options: RespondOptions) {
    this.#options = options;
  }

  async run(work: (emit: Emit) => Promise<Answer>): Promise<Response> {
    const { canStream, signal, idText } = this.#options;
    if (signal.aborted) this.#gone();
    else signal.addEventListener("abort", this.#onAbort, { once: true });
    const answer = work((json) => this.#emit(json)).catch((error: unknown) => {
      this.#options.report(error);
      return internalAnswer(idText);
    });
    if (!canStream) return this.#json(await answer);
    const timer = setTimeout(() => this.#commitment.resolve("commit"), EDGE.commitAfterMs);
    const first = await Promise.race([answer, this.#commitment.promise]);
    clearTimeout(timer);
    // A stream can say that an answer broke off; the body of a JSON answer would just end, as if it were whole.
    return first === "commit" || isInPieces(first) ? this.#streamed(answer) : this.#json(first);
  }

  async #emit(json: string): Promise<boolean> {
    if (!this.#options.canStream || this.#isOver) return false;
    this.#commitment.resolve("commit");
    return this.#events().event(json);
  }

  #events(): EventStream {
    this.#stream ??= new EventStream(this.#options.keepAliveMs, () => this.#gone());
    return this.#stream;
  }

  #streamed(answer: Promise<Answer>): Response {
    const stream = this.#events();
    stream.comment();
    this.#options.waitUntil(this.#finish(stream, answer));
    return new Response(stream.readable, { headers: SSE_HEADERS });
  }

  async #finish(stream: EventStream, pending: Promise<Answer>): Promise<void> {
    const answer = await pending;
    let written = false;
    if (typeof answer.body === "string") written = await stream.event(answer.body);
    else if (answer.body !== null) written = await stream.eventInPieces(answer.body, (error) => this.#broken(error));
    this.#over();
    answer.done?.(written);
    await stream.close();
  }

  #json(answer: Answer): Response {
    const { status, headers, body } = answer;
    if (typeof body === "string") {
      this.#over();
      answer.done?.(true);
      return answerResponse(answer);
    }
    if (body === null) {
      this.#over();
      // Silence: an event stream without events, or, for a client that takes JSON only, nothing.
      return this.#options.canStream ? new Response("", { headers: SSE_HEADERS }) : new Response(null, { status: 202 });
    }
    const writer = new BodyWriter(() => this.#gone());
    this.#options.waitUntil(this.#pour(writer, body, answer));
    return new Response(writer.readable, { status, headers: { ...JSON_HEADERS, ...headers } });
  }

  async #pour(writer: BodyWriter, pieces: AsyncIterable<Uint8Array>, answer: Answer): Promise<void> {
    let written = true;
    try {
      for await (const piece of pieces) {
        written = await writer.write(piece);
        if (!written) break;
      }
      this.#over();
      await writer.close();
    } catch (error) {
      written = false;
      this.#broken(error);
      this.#over();
      await writer.abort();
    }
    answer.done?.(written);
  }

  #broken(error: unknown): string {
    if (!(error instanceof BrokenPayloadError)) {
      this.#options.report(error);
      return rpcErrorText(this.#options.idText, RPC.internalError, "The relay failed on this answer. Its log says why.");
    }
    const { code, message, data } = failureToRpcError(error.failure);
    return rpcErrorText(this.#options.idText, code, message, data);
  }

  #gone(): void {
    if (this.#isOver) return;
    this.#over();
    this.#options.onGone();
  }

  #over(): void {
    this.#isOver = true;
    this.#options.signal.removeEventListener("abort", this.#onAbort);
  }
}
