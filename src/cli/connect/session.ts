/** The handshake session at the relay: what it was opened with, so that it can be opened again when it is gone. */
import { CONNECT } from "../../limits.ts";
import type { ClientMessage } from "./message.ts";

/** Sends one message in the session named, and gives the session id of the answer and its result; null when it failed. */
export type Handshake = (body: string, headers: Record<string, string>) => Promise<{ sessionId?: string; version?: string } | null>;

export class Session {
  id: string | undefined;
  #version: string | undefined;
  #initialize: ClientMessage | undefined;
  #isInitialized = false;
  /** `logging/setLevel` and `resources/subscribe` of this session, by what they set. */
  readonly #state = new Map<string, ClientMessage>();
  #opening: Promise<boolean> | undefined;

  /** The client's handshake was answered. */
  begin(initialize: ClientMessage, id: string | undefined, version: string | undefined): void {
    this.#initialize = initialize;
    this.#isInitialized = false;
    this.#state.clear();
    this.id = id;
    this.#version = version;
  }

  /** Remembers what a new session has to be told again. */
  note(message: ClientMessage): void {
    const { method, params } = message;
    if (method === "notifications/initialized") this.#isInitialized = true;
    else if (method === "logging/setLevel") this.#state.set("level", message);
    else if (method === "resources/unsubscribe") this.#state.delete(`uri ${String(params["uri"])}`);
    else if (method === "resources/subscribe" && this.#state.size < CONNECT.subscriptions)
      this.#state.set(`uri ${String(params["uri"])}`, message);
  }

  /** Headers of a message in this session. */
  headers(): Record<string, string> {
    return {
      ...(this.id === undefined ? {} : { "mcp-session-id": this.id }),
      ...(this.#version === undefined ? {} : { "mcp-protocol-version": this.#version }),
    };
  }

  /** Opens a new session in place of `lost`; once for all that lost the same. False when the relay opens none. */
  async reopen(lost: string, handshake: Handshake): Promise<boolean> {
    if (this.id !== lost) return true;
    this.#opening ??= this.#open(handshake).finally(() => (this.#opening = undefined));
    return await this.#opening;
  }

  async #open(handshake: Handshake): Promise<boolean> {
    const text = this.#initialize?.text;
    const opened = text === undefined ? null : await handshake(text, {});
    if (opened?.sessionId === undefined) return false;
    this.id = opened.sessionId;
    this.#version = opened.version ?? this.#version;
    if (this.#isInitialized) await handshake(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, this.headers());
    for (const message of this.#state.values()) await handshake(message.text, this.headers());
    return true;
  }
}
