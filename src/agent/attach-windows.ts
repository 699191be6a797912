/** The time that each call without a link has until somebody attaches to it (design section 5, "At most once"). */
import { CALL } from "../limits.ts";

export class AttachWindows {
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();
  readonly #onOver: (callId: string) => void;

  /** `onOver` hears of a call that nobody attached to in CALL.attachWindowMs. */
  constructor(onOver: (callId: string) => void) {
    this.#onOver = onOver;
  }

  has(callId: string): boolean {
    return this.#timers.has(callId);
  }

  /** Begins a call's time, or begins it again. */
  open(callId: string): void {
    this.close(callId);
    const timer = setTimeout(() => {
      this.#timers.delete(callId);
      this.#onOver(callId);
    }, CALL.attachWindowMs);
    timer.unref();
    this.#timers.set(callId, timer);
  }

  close(callId: string): void {
    clearTimeout(this.#timers.get(callId));
    this.#timers.delete(callId);
  }
}
