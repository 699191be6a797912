/** One connection of an event feed: a WebSocket, or server-sent events. */
import { randomUUID } from "node:crypto";
import { WebSocket } from "ws";
import { FEED } from "../../limits.ts";
import { cleanText } from "../clean-text.ts";
import type { FeedConfig } from "../types.ts";
import { ExchangeError, mediaType, openExchange } from "../upstreams/http-exchange.ts";
import { SseParser } from "../upstreams/sse.ts";

export interface FeedSink {
  opened(): void;
  message(data: Buffer): void;
}

/** Follows the feed. Resolves with why it ended, for a person; also once the signal says so. Never rejects. */
export async function followFeed(config: FeedConfig, sink: FeedSink, signal: AbortSignal): Promise<string> {
  return config.url.protocol === "ws:" || config.url.protocol === "wss:"
    ? await followSocket(config, sink, signal)
    : await followEvents(config, sink, signal);
}

function followSocket(config: FeedConfig, sink: FeedSink, signal: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    const socket = new WebSocket(config.url, {
      headers: { ...config.headers },
      handshakeTimeout: FEED.connectMs,
      maxPayload: FEED.messageBytes * 2,
      // Its own server may answer with another place; credentials stay here.
      followRedirects: false,
    });
    let why = "the connection was closed";
    let isAlive = true;
    const pinger = setInterval(() => {
      if (!isAlive) {
        why = "no answer to a ping";
        socket.terminate();
      }
      isAlive = false;
      if (socket.readyState === socket.OPEN) socket.ping();
    }, FEED.pingMs);
    const stop = () => socket.terminate();
    signal.addEventListener("abort", stop, { once: true });
    socket.on("open", () => {
      isAlive = true;
      if (config.hello !== undefined) socket.send(helloText(config.hello));
      sink.opened();
    });
    socket.on("pong", () => (isAlive = true));
    socket.on("message", (data) => {
      isAlive = true;
      sink.message(Buffer.isBuffer(data) ? data : Buffer.concat(Array.isArray(data) ? data : [Buffer.from(data)]));
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      why = error.code ?? (socket.readyState === socket.CONNECTING ? "the server did not take the connection" : "the connection broke");
    });
    socket.on("close", () => {
      clearInterval(pinger);
      signal.removeEventListener("abort", stop);
      resolve(cleanText(why));
    });
    if (signal.aborted) stop();
  });
}

function helloText(hello: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(hello, (_name, value: unknown) => (value === "{uuid}" ? randomUUID() : value));
}

async function followEvents(config: FeedConfig, sink: FeedSink, signal: AbortSignal): Promise<string> {
  const connecting = new AbortController();
  const timer = setTimeout(() => connecting.abort(), FEED.connectMs);
  const headers = { accept: "text/event-stream", ...config.headers };
  try {
    const response = await openExchange({ url: config.url, method: "GET", headers }, AbortSignal.any([signal, connecting.signal]));
    clearTimeout(timer);
    if (response.statusCode !== 200 || mediaType(response) !== "text/event-stream") {
      response.destroy();
      return `HTTP ${response.statusCode ?? 0} instead of an event stream`;
    }
    sink.opened();
    const parser = new SseParser(FEED.messageBytes * 2, ({ data }) => {
      // An id alone is no message.
      if (data.length > 0) sink.message(data);
    });
    for await (const chunk of response as AsyncIterable<Buffer>) parser.push(chunk);
    return "the stream ended";
  } catch (error) {
    if (error instanceof ExchangeError) return connecting.signal.aborted ? "no answer in time" : cleanText(error.code);
    return error instanceof RangeError ? "a message is far too large" : "the stream broke";
  } finally {
    clearTimeout(timer);
  }
}
