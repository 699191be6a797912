/**
 * Notifications of one call on their way to its caller: the caller's own progress token comes back exactly as it was
 * sent, progress only grows, and logs come only when asked for. Pure.
 */
import { isObject } from "./json-rpc.ts";
import { levelRank } from "./meta.ts";
import { oneLine, spliceText } from "./splice.ts";

export interface EventWishes {
  /** JSON text of the caller's progress token; undefined means no progress. */
  tokenText: string | undefined;
  /** Lowest log level wanted: a level, "all" when the object filters by the session's level, undefined for none. */
  logLevel: string | undefined;
}

/** Filters and shapes the events of one call; keeps the last progress. */
export class EventFilter {
  readonly #wishes: EventWishes;
  #progress = Number.NEGATIVE_INFINITY;

  constructor(wishes: EventWishes) {
    this.#wishes = wishes;
  }

  /** The notification as one line, or null when the caller does not get it. `params` is JSON text. */
  text(method: "notifications/progress" | "notifications/message", params: string): string | null {
    let value: unknown;
    try {
      value = JSON.parse(params);
    } catch {
      return null; // a broken notification costs only itself
    }
    if (!isObject(value)) return null;
    const shaped = method === "notifications/progress" ? this.#progressParams(value, params) : this.#logParams(value, params);
    return shaped === null ? null : `{"jsonrpc":"2.0","method":"${method}","params":${oneLine(shaped)}}`;
  }

  #progressParams(value: Record<string, unknown>, params: string): string | null {
    const token = this.#wishes.tokenText;
    const { progress } = value;
    if (token === undefined || typeof progress !== "number" || progress <= this.#progress) return null;
    this.#progress = progress;
    const { progressToken: foreign, ...own } = value;
    return spliceText(`"progressToken":${token}`, foreign === undefined ? params : JSON.stringify(own));
  }

  #logParams(value: Record<string, unknown>, params: string): string | null {
    const wanted = this.#wishes.logLevel;
    if (wanted === undefined) return null;
    return wanted === "all" || levelRank(value["level"]) >= levelRank(wanted) ? params.trim() : null;
  }
}
