/**
 * A listener's event stream: what the object tells on a hibernating socket goes out as events, with comments between
 * them that the edge writes by itself, so that the object can sleep. It ends once, whoever ends it: the client, the
 * object, or a reader who takes nothing any more.
 */
import type { Refusal } from "../../durable/rpc.ts";
import { LISTEN } from "../limits.ts";
import { LISTEN_CLOSE, type ListenFacts, type ListVersions, type Opened } from "../tunnel/notices.ts";
import type { EdgeContext } from "./context.ts";
import { connectListener, type Connected, type ListenEvents, type ListenSocket } from "./listen-socket.ts";
import type { NoticeShape } from "./notices.ts";
import { EventStream, SSE_HEADERS } from "./sse.ts";

const ORDERLY: ReadonlySet<number> = new Set(Object.values(LISTEN_CLOSE));

/** Opens a listener and answers with its stream, or says why there is none. */
export async function openNotices(context: EdgeContext, facts: ListenFacts, shape: NoticeShape): Promise<Response | Refusal> {
  return new NoticeStream(context, facts, shape).open();
}

class NoticeStream {
  readonly #context: EdgeContext;
  readonly #facts: ListenFacts;
  readonly #shape: NoticeShape;
  readonly #onAbort = (): void => this.#stop();
  readonly #events: ListenEvents = {
    message: (message) => {
      if (message.type === "end") return void this.#end();
      if (message.type === "resource") return this.#say(this.#shape.resource(message.uri));
      if (this.#seen !== undefined) this.#seen = { ...this.#seen, [message.what]: message.version };
      this.#say(this.#shape.list(message.what));
    },
    closed: (code) => void this.#closed(code),
  };
  /** Texts that were not written yet, each once: a client learns no more from hearing the same twice. */
  readonly #waiting = new Set<string>();
  #waitingChars = 0;
  #isWriting = false;
  #stream: EventStream | null = null;
  #socket: ListenSocket | null = null;
  #seen: ListVersions | undefined;
  #isOver = false;

  constructor(context: EdgeContext, facts: ListenFacts, shape: NoticeShape) {
    this.#context = context;
    this.#facts = facts;
    this.#shape = shape;
  }

  async open(): Promise<Response | Refusal> {
    const { access, keepAliveMs, request } = this.#context;
    const connected = await connectListener(access, this.#facts, this.#events);
    if (!connected.ok) return connected.refusal;
    const stream = new EventStream(keepAliveMs, () => this.#stop());
    this.#stream = stream;
    this.#attach(connected);
    const first = this.#shape.opened(connected.opened);
    // The first bytes go out at once, so that nothing on the way takes the stream for stuck.
    if (first === null) stream.comment();
    else this.#say(first);
    request.signal.addEventListener("abort", this.#onAbort, { once: true });
    if (request.signal.aborted) this.#stop();
    return new Response(stream.readable, { headers: SSE_HEADERS });
  }

  #attach({ socket, opened }: { socket: ListenSocket; opened: Opened }): void {
    this.#socket = socket;
    this.#seen = opened.versions;
  }

  /** The one end without a word to the client: it left, or it takes nothing any more. */
  #stop(): void {
    if (!this.#over()) return;
    this.#socket?.close();
    void this.#stream?.abort();
  }

  /** The end in order: what waits is written, then the closing message of its era. Then the object hears that it is done. */
  async #end(): Promise<void> {
    if (!this.#over()) return;
    const stream = this.#stream;
    if (stream === null) return;
    const timer = setTimeout(() => void stream.abort(), LISTEN.endMs);
    try {
      for (const text of this.#waiting) await stream.event(text);
      const last = this.#shape.ended();
      if (last !== null) await stream.event(last);
      await stream.close();
    } finally {
      clearTimeout(timer);
      this.#socket?.close();
    }
  }

  /** True for the one time that the listener ends. */
  #over(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#context.request.signal.removeEventListener("abort", this.#onAbort);
    return true;
  }

  #say(text: string): void {
    if (this.#isOver || this.#waiting.has(text)) return;
    this.#waiting.add(text);
    this.#waitingChars += text.length;
    if (this.#waitingChars > LISTEN.waitingChars) this.#stop();
    else if (!this.#isWriting) void this.#write();
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    for (const text of this.#waiting) {
      // Before it is written: a change that comes while it is on its way is another one.
      this.#waiting.delete(text);
      this.#waitingChars -= text.length;
      await this.#stream?.event(text);
      if (this.#isOver) break;
    }
    this.#isWriting = false;
  }

  async #closed(code: number): Promise<void> {
    if (this.#isOver) return;
    this.#socket = null;
    if (ORDERLY.has(code) || !(await this.#reopen())) await this.#end();
  }

  /** The object was lost, not the listener: another socket takes over. False when there is none to be had. */
  async #reopen(): Promise<boolean> {
    const { access } = this.#context;
    for (let tries = 0; tries < LISTEN.reopenTries && !this.#isOver; tries += 1) {
      await access.pause(LISTEN.reopenPauseMs);
      const connected = await this.#reconnect();
      if (!connected.ok) {
        if (connected.refusal.kind === "failure") continue;
        return false;
      }
      if (this.#isOver) {
        connected.socket.close();
        return true;
      }
      this.#attach(connected);
      // Whether a resource changed in between nobody knows; reading it once too often is better than never again.
      for (const uri of connected.opened.resources) this.#say(this.#shape.resource(uri));
      return true;
    }
    return this.#isOver;
  }

  async #reconnect(): Promise<Connected> {
    const facts = this.#seen === undefined ? this.#facts : { ...this.#facts, seen: this.#seen };
    try {
      return await connectListener(this.#context.access, facts, this.#events);
    } catch (error) {
      this.#context.access.report(error);
      return { ok: false, refusal: { kind: "grant" } };
    }
  }
}
