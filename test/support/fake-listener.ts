/** The object's side of a listener's socket, for tests of the edge: says what a test says, and knows when it was closed. */
import type { ListenReply, ListenSocket } from "../../src/mcp/listen-socket.ts";
import type { ListenFacts, ListenMessage, ListKind } from "../../src/tunnel/notices.ts";

export const VERSIONS = { tools: 0, prompts: 0, resources: 0 };

export class FakeListener implements ListenSocket {
  readonly facts: ListenFacts;
  isClosed = false;
  #early: unknown[] = [];
  #onMessage: ((data: unknown) => void) | null = null;
  #onClose: (code: number) => void = () => undefined;

  constructor(facts: ListenFacts) {
    this.facts = facts;
  }

  take(onMessage: (data: unknown) => void, onClose: (code: number) => void): void {
    this.#onMessage = onMessage;
    this.#onClose = onClose;
    for (const data of this.#early) onMessage(data);
    this.#early = [];
  }

  close(): void {
    this.isClosed = true;
  }

  /** A message of the object. */
  say(message: ListenMessage): void {
    this.raw(JSON.stringify(message));
  }

  raw(data: unknown): void {
    if (this.#onMessage === null) this.#early.push(data);
    else this.#onMessage(data);
  }

  list(what: ListKind, version = 1): void {
    this.say({ type: "list", what, version });
  }

  /** The object ends the socket, or is lost. */
  end(code: number): void {
    this.#onClose(code);
  }
}

/** Takes listeners as an object would that offers everything; keeps them in order. */
export class FakeListeners {
  readonly all: FakeListener[] = [];
  /** Answers in place of the next listeners, first in first out; an Error is thrown. */
  readonly instead: (ListenReply | Error)[] = [];

  readonly listen = async (facts: ListenFacts): Promise<ListenReply> => {
    const other = this.instead.shift();
    if (other instanceof Error) throw other;
    if (other !== undefined) return other;
    const listener = new FakeListener(facts);
    this.all.push(listener);
    const { lists = ["tools", "prompts", "resources"], resources = [] } = facts.filter ?? {};
    listener.say({ type: "open", lists, resources, versions: VERSIONS });
    return { ok: true, socket: listener };
  };

  /** The newest listener. */
  get last(): FakeListener {
    const listener = this.all.at(-1);
    if (listener === undefined) throw new Error("nobody listens");
    return listener;
  }
}
