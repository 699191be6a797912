/** The last events of the agent, for a support bundle. */
import { TOOLS } from "../limits.ts";
import type { AgentEvent } from "./types.ts";

export class RecentEvents {
  #events: { at: string; event: AgentEvent }[] = [];

  add(event: AgentEvent): void {
    this.#events.push({ at: new Date().toISOString(), event });
    // In steps, so that not every event moves all others.
    if (this.#events.length > 2 * TOOLS.bundleEvents) this.#events = this.#events.slice(-TOOLS.bundleEvents);
  }

  /** Oldest first. */
  list(): { at: string; event: AgentEvent }[] {
    return this.#events.slice(-TOOLS.bundleEvents);
  }
}
