/**
 * Calls for a device that sleeps: its wake URL is posted to, at most once a minute, and a call waits a while for the link
 * that comes of it. Off the usual call's path: nothing here runs while a link is up.
 */
import { WAKE } from "../src/limits.ts";
import type { Desk } from "./desk.ts";

/** Posts to an address; never rejects. */
export type PostWake = (url: string, device: string) => Promise<void>;

export class Waker {
  readonly #desk: Desk;
  readonly #post: PostWake;
  readonly #waiting = new Set<() => void>();

  constructor(desk: Desk, post: PostWake) {
    this.#desk = desk;
    this.#post = post;
  }

  /** Resolves when a link came up or the time is over. */
  async wake(url: string): Promise<void> {
    const { meta } = this.#desk;
    const now = this.#desk.now();
    let wokenAt = meta.get("wokenAt") ?? 0;
    if (now - wokenAt >= WAKE.pauseMs) {
      wokenAt = now;
      // Written before it is posted: a loss of this object must not make it two.
      meta.set("wokenAt", now);
      this.#desk.ctx.waitUntil(this.#post(url, meta.get("name") ?? ""));
    }
    // A device that did not come is not waited for a second time in the same minute.
    const leftMs = wokenAt + WAKE.waitMs - now;
    if (leftMs > 0) await this.#linkWithin(leftMs);
  }

  /** A link is up. */
  linked(): void {
    for (const go of this.#waiting) go();
  }

  async #linkWithin(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#waiting.add(done);
    });
  }
}
