/**
 * The calls on one instance, and whose an unlabelled message is (design section 6). A server request or a log that
 * names no call goes to the one call it can belong to, or to none. Pure.
 */
import { isLogWanted } from "./revisions.ts";
import type { CallSink, InputMethod, UpstreamCall } from "./upstream.ts";

export interface Running {
  call: UpstreamCall;
  sink: CallSink;
  /** What its client would have had to declare for what the upstream asked of it in vain. */
  lacked?: Record<string, unknown>;
}

/** The client capability that an input request needs. */
const CAPABILITY: ReadonlyMap<string, string> = new Map([
  ["elicitation/create", "elicitation"],
  ["sampling/createMessage", "sampling"],
  ["roots/list", "roots"],
]);
/** Methods during which an upstream may ask (MCP 2026-07-28, MRTR; applied to legacy upstreams alike). */
export const ASKING: ReadonlySet<string> = new Set(["tools/call", "prompts/get", "resources/read"]);

export function isInputMethod(method: string): method is InputMethod {
  return CAPABILITY.has(method);
}

/** True when the call's client declared what the input request is about, in whatever mode, and the method may ask. */
export function mayAsk(call: UpstreamCall, method: InputMethod): boolean {
  const capability = CAPABILITY.get(method);
  return ASKING.has(call.method) && capability !== undefined && Object.hasOwn(call.client.capabilities, capability);
}

/** True when the call could be asked anything at all. */
export function isCandidate(call: UpstreamCall): boolean {
  return ASKING.has(call.method) && [...CAPABILITY.values()].some((name) => Object.hasOwn(call.client.capabilities, name));
}

/** The client's input capabilities; what is not about input stays with the relay. */
export function inputCapabilities(capabilities: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const picked: Record<string, unknown> = {};
  for (const name of CAPABILITY.values()) {
    const value = Object.hasOwn(capabilities, name) ? capabilities[name] : undefined;
    if (typeof value !== "object" || value === null) continue;
    // Changes of roots are not carried to the device.
    picked[name] = name === "roots" ? {} : value;
  }
  return picked;
}

export type Sharing = "one_grant" | "many_grants";

export class InFlight {
  readonly #running = new Set<Running>();

  get size(): number {
    return this.#running.size;
  }

  add(entry: Running): void {
    this.#running.add(entry);
  }

  remove(entry: Running): void {
    this.#running.delete(entry);
  }

  /** The call a server request without a label belongs to: the only one that may be asked. */
  ownerOfRequest(method: InputMethod): Running | undefined {
    const candidates = [...this.#running].filter((entry) => mayAsk(entry.call, method));
    return candidates.length === 1 ? candidates[0] : undefined;
  }

  /** The only call that an upstream may ask at all, whatever its client declared. */
  onlyAsking(): Running | undefined {
    const asking = [...this.#running].filter(({ call }) => ASKING.has(call.method));
    return asking.length === 1 ? asking[0] : undefined;
  }

  /** The call a log without a label goes to. */
  ownerOfLog(level: unknown, era: "modern" | "legacy", sharing: Sharing): Running | undefined {
    const all = [...this.#running];
    const asked = all.filter((entry) => entry.call.logLevel !== undefined);
    // A modern upstream logs only for calls that asked; a legacy one for any, so another grant's must not leak.
    const isCertain = era === "modern" ? asked.length === 1 : sharing === "one_grant" || all.length === 1;
    return isCertain ? asked.find((entry) => isLogWanted(level, entry.call.logLevel)) : undefined;
  }
}

/** A first-come queue for the one call that may be asked. */
export class Turns {
  #waiting: (() => void)[] = [];
  #isTaken = false;

  /** Resolves with the function that gives the turn back; null when the signal came first. */
  async take(signal: AbortSignal): Promise<(() => void) | null> {
    if (signal.aborted) return null;
    if (!this.#isTaken) {
      this.#isTaken = true;
      return () => this.#pass();
    }
    return await new Promise((resolve) => {
      const mine = () => {
        signal.removeEventListener("abort", gone);
        resolve(() => this.#pass());
      };
      const gone = () => {
        this.#waiting = this.#waiting.filter((other) => other !== mine);
        resolve(null);
      };
      this.#waiting.push(mine);
      signal.addEventListener("abort", gone, { once: true });
    });
  }

  #pass(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#isTaken = false;
  }
}
