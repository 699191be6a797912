/**
 * One keep-alive HTTP/1.1 connection that costs the load generator as little as possible: requests are bytes made
 * once, responses are measured and not decoded. Loopback only; one exchange at a time.
 */
import { connect, type Socket } from "node:net";

/** Where a request goes and its bytes, head and body. */
export interface Target {
  port: number;
  request: Buffer;
}

/** One response, measured. */
export interface Exchange {
  status: number;
  /** Bytes of the body, without the framing of chunks. */
  bytes: number;
  /** The body's beginning, at most `HEAD_BYTES`, to tell an error from a result. */
  head: string;
}

/** ms that one exchange may take; more means that something hangs, which ends the run. */
const EXCHANGE_MS = 120_000;
const HEAD_BYTES = 512;
const CRLF = Buffer.from("\r\n");
const END_OF_HEADERS = Buffer.from("\r\n\r\n");
const NOTHING = Buffer.alloc(0);

type Part = "headers" | "fixed" | "size" | "chunk" | "after" | "trailer";

interface Waiting {
  resolve(exchange: Exchange): void;
  reject(error: Error): void;
  onBody: ((bytes: Buffer) => void) | undefined;
}

/** Makes a POST as bytes. */
export function postRequest(path: string, port: number, headers: Readonly<Record<string, string>>, body: string): Buffer {
  const bytes = Buffer.from(body);
  const lines = [`POST ${path} HTTP/1.1`, `host: 127.0.0.1:${port}`, `content-length: ${bytes.length}`];
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`), bytes]);
}

export class Connection {
  readonly #socket: Socket;
  #waiting: Waiting | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #rest: Buffer = NOTHING;
  #part: Part = "headers";
  #left = 0;
  #status = 0;
  #bytes = 0;
  #head: Buffer = NOTHING;
  #headText = "";

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (data) => this.#take(data));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(new Error("the connection was closed")));
  }

  /** Connects to a port of this machine. */
  static open(port: number): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1");
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new Connection(socket));
      });
    });
  }

  /** Sends a request and resolves with its whole response. `onBody` sees each piece of the body as it comes. */
  exchange(request: Buffer, onBody?: (bytes: Buffer) => void): Promise<Exchange> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject, onBody };
      this.#part = "headers";
      this.#bytes = 0;
      this.#head = NOTHING;
      this.#timer ??= setTimeout(() => this.#fail(new Error(`no answer within ${EXCHANGE_MS} ms`)), EXCHANGE_MS);
      this.#timer.refresh();
      this.#socket.write(request);
    });
  }

  /** Ends the connection. */
  close(): void {
    clearTimeout(this.#timer);
    this.#waiting = null;
    this.#socket.destroy();
  }

  #take(data: Buffer): void {
    this.#rest = this.#rest.length === 0 ? data : Buffer.concat([this.#rest, data]);
    while (this.#waiting !== null && this.#step());
  }

  /** Takes one part of the response. False when more bytes are needed. */
  #step(): boolean {
    switch (this.#part) {
      case "headers":
        return this.#headers();
      case "fixed":
        return this.#body(() => this.#done());
      case "size":
        return this.#size();
      case "chunk":
        return this.#body(() => (this.#part = "after"));
      case "after":
        if (this.#rest.length < 2) return false;
        this.#rest = this.#rest.subarray(2);
        this.#part = "size";
        return true;
      case "trailer":
        if (this.#rest.length < 2) return false;
        this.#rest = this.#rest.subarray(2);
        this.#done();
        return true;
      default:
        return false;
    }
  }

  #headers(): boolean {
    const end = this.#rest.indexOf(END_OF_HEADERS);
    if (end < 0) return false;
    const head = this.#rest.toString("latin1", 0, end);
    this.#rest = this.#rest.subarray(end + END_OF_HEADERS.length);
    this.#status = Number(head.slice(9, 12));
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    this.#left = Number(length ?? 0);
    this.#part = length === undefined ? "size" : "fixed";
    if (this.#part === "fixed" && this.#left === 0) this.#done();
    return true;
  }

  #size(): boolean {
    const end = this.#rest.indexOf(CRLF);
    if (end < 0) return false;
    this.#left = Number.parseInt(this.#rest.toString("latin1", 0, end), 16);
    this.#rest = this.#rest.subarray(end + 2);
    this.#part = this.#left === 0 ? "trailer" : "chunk";
    return true;
  }

  #body(next: () => void): boolean {
    if (this.#rest.length === 0) return false;
    const bytes = this.#rest.subarray(0, this.#left);
    this.#rest = this.#rest.subarray(bytes.length);
    this.#left -= bytes.length;
    this.#bytes += bytes.length;
    if (this.#head.length < HEAD_BYTES) this.#head = this.#head.length === 0 ? bytes : Buffer.concat([this.#head, bytes]);
    this.#waiting?.onBody?.(bytes);
    if (this.#left === 0) next();
    return true;
  }

  #done(): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    this.#headText = this.#head.toString("latin1", 0, HEAD_BYTES);
    waiting?.resolve({ status: this.#status, bytes: this.#bytes, head: this.#headText });
  }

  #fail(error: Error): void {
    clearTimeout(this.#timer);
    this.#waiting?.reject(error);
    this.#waiting = null;
  }
}
