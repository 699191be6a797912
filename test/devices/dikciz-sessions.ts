/** The phone's own MCP sessions: eight at most, ten idle minutes, swept only when one is opened or looked up. */
import { randomUUID } from "node:crypto";

const MAX_SESSIONS = 8;
const IDLE_MS = 10 * 60_000;

export interface PhoneSession {
  id: string;
  version: string;
  isReady: boolean;
  usedAt: number;
  /** What ends with the session: streams of its calls. */
  streams: Set<() => void>;
}

export class DikcizSessions {
  readonly #now: () => number;
  readonly #live = new Map<string, PhoneSession>();

  /** `now` is the phone's clock in ms. */
  constructor(now: () => number) {
    this.#now = now;
  }

  get count(): number {
    return this.#live.size;
  }

  /** A new session; undefined when eight are alive. */
  open(version: string): PhoneSession | undefined {
    this.#sweep();
    if (this.#live.size >= MAX_SESSIONS) return undefined;
    const session = { id: randomUUID(), version, isReady: false, usedAt: this.#now(), streams: new Set<() => void>() };
    this.#live.set(session.id, session);
    return session;
  }

  /** The session of that id, its idle time started anew. */
  use(id: string): PhoneSession | undefined {
    this.#sweep();
    const session = this.#live.get(id);
    if (session) session.usedAt = this.#now();
    return session;
  }

  close(id: string): boolean {
    const session = this.#live.get(id);
    for (const end of session?.streams ?? []) end();
    return this.#live.delete(id);
  }

  /** The process was started again: nobody knows an id any more. */
  forget(): void {
    for (const id of this.#live.keys()) this.close(id);
  }

  #sweep(): void {
    for (const [id, session] of this.#live) if (this.#now() - session.usedAt >= IDLE_MS) this.close(id);
  }
}
