/** The HTTP server under a fake device: every request is noted whole, and answered by a function of the device's own. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { readObject, type Json } from "./json.ts";

/** A request as it came, headers with repetitions. */
export interface Seen {
  method: string;
  path: string;
  httpVersion: string;
  headers: Map<string, string[]>;
  body: string;
  /** The body when it is a JSON object. */
  json: Json | undefined;
  /** Bytes of all header lines. */
  headerBytes: number;
}

export interface HttpDevice {
  port: number;
  /** Everything that was asked, in order. */
  seen: Seen[];
  /** Connections that are open now. */
  open(): Promise<number>;
  /** Cuts every connection, as a cable that is pulled. */
  cut(): void;
  stop(): Promise<void>;
}

type Handler = (request: Seen, response: ServerResponse) => void | Promise<void>;

/** Listens on a loopback address; port 0 takes a free one. */
export async function listenHttp(handler: Handler, at: { port?: number; host?: string } = {}): Promise<HttpDevice> {
  const seen: Seen[] = [];
  const server = createServer((incoming, response) => {
    void readRequest(incoming)
      .then(async (request) => {
        seen.push(request);
        await handler(request, response);
      })
      // A client that went away while it was read or answered.
      .catch(() => response.destroy());
  });
  // Neither device closes an idle connection by itself.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(at.port ?? 0, at.host ?? "127.0.0.1", resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    open: () => new Promise((resolve, reject) => server.getConnections((error, count) => (error ? reject(error) : resolve(count)))),
    cut: () => server.closeAllConnections(),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A header that may be given once; undefined when it is absent. */
export function one(request: Seen, name: string): string | undefined {
  return request.headers.get(name)?.[0];
}

/** Answers with JSON, or with nothing at all. */
export function reply(response: ServerResponse, status: number, body?: Json, headers: Record<string, string> = {}): void {
  const content = body === undefined ? "" : JSON.stringify(body);
  response.writeHead(status, {
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    "content-length": String(Buffer.byteLength(content)),
    ...headers,
  });
  response.end(content);
}

async function readRequest(incoming: IncomingMessage): Promise<Seen> {
  const headers = new Map<string, string[]>();
  let headerBytes = 0;
  for (let at = 0; at < incoming.rawHeaders.length; at += 2) {
    const [name, value] = [incoming.rawHeaders[at]?.toLowerCase() ?? "", incoming.rawHeaders[at + 1] ?? ""];
    headerBytes += name.length + value.length + ": \r\n".length;
    headers.set(name, [...(headers.get(name) ?? []), value]);
  }
  const parts: Buffer[] = [];
  for await (const part of incoming as AsyncIterable<Buffer>) parts.push(part);
  const body = Buffer.concat(parts).toString("utf8");
  return {
    method: incoming.method ?? "",
    path: incoming.url ?? "",
    httpVersion: incoming.httpVersion,
    headers,
    body,
    json: readObject(body),
    headerBytes,
  };
}
