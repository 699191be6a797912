/**
 * One HTTP request to an upstream with its answer as chunks. Node's own client: no redirect is followed, no time
 * limit ends a silent call before its deadline does, and closing it closes the stream.
 */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { UPSTREAM } from "../../limits.ts";
import { directTo, proxyRefusal, routeTo } from "../network.ts";

export interface Exchange {
  url: URL;
  method: string;
  headers: Readonly<Record<string, string>>;
  body?: string;
  /** To the relay or on its behalf: through the proxy that the environment names. Whatever is on or near the device is reached directly. */
  viaProxy?: true;
}

/** How far a failed request came. */
export class ExchangeError extends Error {
  override readonly name = "ExchangeError";
  /** True when no connection was made, so that nothing can have begun. */
  readonly neverSent: boolean;
  /** System error code, for a person. */
  readonly code: string;
  constructor(code: string, neverSent: boolean) {
    super(code);
    this.code = code;
    this.neverSent = neverSent;
  }
}

/** Errors of the system before a connection exists. */
const NOT_CONNECTED = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "EADDRNOTAVAIL"]);

/** Sends a request and resolves with its answer's head. Rejects with ExchangeError. */
export function openExchange(exchange: Exchange, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const isSecure = exchange.url.protocol === "https:";
    const send = isSecure ? httpsRequest : httpRequest;
    const body = exchange.body === undefined ? undefined : Buffer.from(exchange.body, "utf8");
    const request = send(exchange.url, {
      method: exchange.method,
      ...(exchange.viaProxy === true ? routeTo(exchange.url) : directTo(exchange.url)),
      signal,
      headers: { ...exchange.headers, ...(body ? { "content-length": String(body.length) } : {}) },
    });
    let isConnected = false;
    request.on("socket", (socket) => {
      // A kept-alive socket is connected already; a secure one counts from the end of its handshake.
      if (!socket.connecting) isConnected = true;
      else socket.once(isSecure ? "secureConnect" : "connect", () => (isConnected = true));
    });
    request.on("response", resolve);
    request.on("error", (error: NodeJS.ErrnoException) => {
      const code = error.code ?? "failed";
      reject(new ExchangeError(code, !isConnected || NOT_CONNECTED.has(code) || proxyRefusal(code) !== undefined));
    });
    request.end(body);
  });
}

/** The whole body, up to `max` bytes. Rejects with RangeError over it. */
export async function readBody(response: IncomingMessage, max: number = UPSTREAM.maxMessageBytes): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > max) {
      response.destroy();
      throw new RangeError("body over the cap");
    }
    parts.push(chunk);
  }
  return Buffer.concat(parts);
}

/** The media type in lower case, without parameters. */
export function mediaType(response: IncomingMessage): string {
  return (response.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
}
