/** Requests to one MCP URL: with the caller's token, again after a renewal, and again while the relay is away and nothing was begun. */
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { Backoff } from "../../agent/backoff.ts";
import { ExchangeError, openExchange, type Exchange } from "../../agent/upstreams/http-exchange.ts";
import { ApiError } from "../../errors.ts";
import { CONNECT } from "../../limits.ts";

/** Where access tokens come from. */
export interface TokenSource {
  /** The token to use now; may wait for a person. */
  current(): Promise<string>;
  /** Another one, because this one was refused; undefined when there is none. */
  renewed(refused: string): Promise<string | undefined>;
}

/** One request, and whether it may be sent a second time although the first may have arrived. */
export interface RelayRequest {
  method: Exchange["method"];
  headers: Readonly<Record<string, string>>;
  body?: string;
  mayRepeat: boolean;
  /** Called when the request is about to leave for the first time. */
  onSent?: () => void;
}

/** Statuses of a proxy in front of a relay that is away. */
const AWAY = new Set([502, 503, 504]);

export class RelayHttp {
  readonly #url: URL;
  readonly #tokens: TokenSource;

  constructor(url: URL, tokens: TokenSource) {
    this.#url = url;
    this.#tokens = tokens;
  }

  /** The head of the answer. Rejects with ExchangeError, or with ApiError when no token is good. */
  async open(request: RelayRequest, signal: AbortSignal): Promise<IncomingMessage> {
    let token = await this.#tokens.current();
    let response = await this.#patiently(request, token, signal);
    for (let i = 0; response.statusCode === 401 && i < 2; i += 1) {
      // 401 comes before anything is done with the message.
      const next = await this.#tokens.renewed(token);
      if (next === undefined) break;
      response.resume();
      token = next;
      response = await this.#patiently(request, token, signal);
    }
    if (response.statusCode === 401) {
      response.resume();
      throw new ApiError(
        "not_authorised",
        "The relay does not accept the access token (any more). Ask the device's owner for one, or leave it out to sign in.",
      );
    }
    return response;
  }

  async #patiently(request: RelayRequest, token: string, signal: AbortSignal): Promise<IncomingMessage> {
    const until = Date.now() + CONNECT.patienceMs;
    const backoff = new Backoff();
    for (;;) {
      const isLast = Date.now() >= until;
      try {
        const response = await this.#once(request, token, signal);
        if (isLast || !request.mayRepeat || !AWAY.has(response.statusCode ?? 0)) return response;
        response.resume();
      } catch (error) {
        const mayRetry = error instanceof ExchangeError && !signal.aborted && (error.neverSent || request.mayRepeat);
        if (isLast || !mayRetry) throw error;
      }
      await sleep(backoff.next(), undefined, { signal });
    }
  }

  async #once(request: RelayRequest, token: string, signal: AbortSignal): Promise<IncomingMessage> {
    const { method, headers, body, onSent } = request;
    onSent?.();
    const exchange = { url: this.#url, method, headers: { ...headers, authorization: `Bearer ${token}` } };
    return await openExchange({ ...exchange, viaProxy: true, ...(body === undefined ? {} : { body }) }, signal);
  }
}
