/** Listeners of an object as the Worker has them, and catalogues to change. */
import type { Refusal } from "../../../durable/rpc.ts";
import {
  asciiJson,
  LISTEN_HEADER,
  LISTEN_PATH,
  type ListenFacts,
  type ListenMessage,
  readListenMessage,
} from "../../../src/tunnel/notices.ts";
import { within } from "../../support/deadline.ts";
import { type FakeAgent, SOON_MS, stubOf } from "./fake-agent.ts";

const CAPABILITIES = { tools: { listChanged: true }, prompts: { listChanged: true }, resources: { listChanged: true, subscribe: true } };

/** A catalogue with tools of these names. */
export function catalogueOf(tools: readonly string[], capabilities: Record<string, unknown> = CAPABILITIES): string {
  return JSON.stringify({
    discover: { capabilities, serverInfo: { name: "pi", version: "1" } },
    tools: tools.map((name) => ({ name, inputSchema: { type: "object" } })),
    resources: [],
    resourceTemplates: [],
    prompts: [],
  });
}

/** The next call of a method that the relay makes for itself, answered. */
export async function answerInternal(agent: FakeAgent, method: string, uri: string): Promise<void> {
  const { frame } = await agent.next("call");
  if (frame.method !== method || frame.target !== uri) throw new Error(`${frame.method} ${frame.target}`);
  agent.answer(frame.callId, "{}");
}

export class ListenerEnd {
  readonly closed: Promise<{ code: number }>;
  readonly socket: WebSocket;
  readonly #received: ListenMessage[] = [];
  #waiting: () => void = () => undefined;

  constructor(socket: WebSocket) {
    this.socket = socket;
    const closed = Promise.withResolvers<{ code: number }>();
    this.closed = closed.promise;
    socket.addEventListener("message", ({ data }) => {
      const message = readListenMessage(data);
      if (message === null) throw new Error(`not a message: ${String(data)}`);
      this.#received.push(message);
      this.#waiting();
    });
    socket.addEventListener("close", ({ code }) => {
      socket.close();
      closed.resolve({ code });
    });
    socket.accept();
  }

  /** Opens a listener, whose first message is left to be read. */
  static async open(deviceId: string, facts: ListenFacts): Promise<ListenerEnd> {
    const reply = await listen(deviceId, facts);
    if (!(reply instanceof WebSocket)) throw new Error(`refused: ${JSON.stringify(reply)}`);
    return new ListenerEnd(reply);
  }

  async next(): Promise<ListenMessage> {
    const waited = async (): Promise<ListenMessage> => {
      for (;;) {
        const message = this.#received.shift();
        if (message !== undefined) return message;
        await new Promise<void>((resolve) => {
          this.#waiting = resolve;
        });
      }
    };
    return within(SOON_MS, "a notice", waited());
  }

  /** What came and was not read. */
  get unread(): readonly ListenMessage[] {
    return this.#received;
  }
}

/** The object's answer to a listener's upgrade. */
export async function listen(deviceId: string, facts: ListenFacts): Promise<WebSocket | Refusal> {
  const headers = { Upgrade: "websocket", [LISTEN_HEADER]: asciiJson(facts) };
  const response = await stubOf(deviceId).fetch(new Request(`https://object${LISTEN_PATH}`, { headers }));
  return response.webSocket ?? (await response.json<{ refusal: Refusal }>()).refusal;
}
