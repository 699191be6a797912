/**
 * What the agent is subscribed to on behalf of everybody: each resource once, however many listeners and sessions want
 * it, so that nobody's end is somebody else's. Asked by internal calls, which belong to no grant; asked again when
 * another run of the agent comes. The agent treats both requests as a set, so repeating one changes nothing.
 */
import { LISTEN } from "../src/limits.ts";
import { otherNames } from "../src/policy/other-names.ts";
import { type AgentError, type AgentFrame, type Call, newCallId, type Result, type UpstreamError } from "../src/tunnel/frames.ts";
import type { Desk } from "./desk.ts";

/** What became of a request: taken by the device, to be taken when it is back, or refused by the upstream with its own error. */
export type Taken = { kind: "taken" } | { kind: "later" } | { kind: "refused"; message: string | Uint8Array };

interface Asked {
  uri: string;
  answered: PromiseWithResolvers<Taken>;
}

const INTERNAL = { grant: "", label: "relay", member: "" } as const;

export class UpstreamResources {
  readonly #desk: Desk;
  /** Requests without an answer, by call id. */
  readonly #asked = new Map<string, Asked>();
  /** Ends of subscriptions without an answer, by call id. */
  readonly #ending = new Set<string>();

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /** Subscribes to a resource, or joins whoever did. Settles within LISTEN.subscribeMs; never rejects. */
  async want(uri: string): Promise<Taken> {
    const link = this.#desk.links.current();
    if (link === null) return { kind: "later" };
    const row = this.#row(uri);
    if (row !== undefined && row.is_taken === 1 && row.instance === link.attachment.instance) return { kind: "taken" };
    const asked = this.#pending(uri) ?? this.#subscribe(uri);
    return asked === null ? { kind: "later" } : withLimit(asked.answered.promise);
  }

  /** Makes what the agent is subscribed to equal to what is wanted. Asks only for differences. */
  keep(wanted: ReadonlySet<string>): void {
    const link = this.#desk.links.current();
    const instance = link?.attachment.instance;
    const rows = this.#desk.ctx.storage.sql
      .exec<{ uri: string; instance: string; is_taken: number }>("SELECT uri, instance, is_taken FROM upstream_resources")
      .toArray();
    const held = new Set<string>();
    for (const row of rows) {
      // Another run of the agent begins without any.
      const isHere = instance === undefined || row.instance === instance;
      if (isHere && wanted.has(row.uri)) {
        if (row.is_taken === 1 || this.#pending(row.uri) !== undefined) held.add(row.uri);
      } else {
        this.#forget(row.uri);
        if (isHere) this.end(row.uri);
      }
    }
    if (link === null) return;
    for (const uri of wanted) if (!held.has(uri)) this.#subscribe(uri);
  }

  /** Ends a subscription at the agent, also one that this object does not know of. */
  end(uri: string): void {
    const callId = this.#send("resources/unsubscribe", uri);
    if (callId !== null) this.#ending.add(callId);
  }

  /** The link is lost: requests without an answer are asked again on the next one. */
  linkLost(): void {
    this.#ending.clear();
    for (const [callId, asked] of this.#asked) {
      this.#asked.delete(callId);
      this.#forget(asked.uri);
      asked.answered.resolve({ kind: "later" });
    }
  }

  /** Takes the agent's answer to an internal call. False when the frame belongs to another call. */
  onFrame(frame: AgentFrame, message: string | Uint8Array): boolean {
    if (!("callId" in frame)) return false;
    const { callId } = frame;
    const asked = this.#asked.get(callId);
    if (asked === undefined && !this.#ending.has(callId)) return false;
    if (frame.type !== "result" && frame.type !== "error") return true;
    this.#ending.delete(callId);
    this.#asked.delete(callId);
    this.#desk.delivered.add(callId);
    if (asked !== undefined) asked.answered.resolve(this.#answer(asked.uri, frame, message));
    return true;
  }

  #answer(uri: string, frame: Result | AgentError | UpstreamError, message: string | Uint8Array): Taken {
    const isOurs = frame.type === "error" && frame.origin === "agent";
    // A failed upstream is asked by the agent itself when it is back; anything else the agent did not keep.
    const isKept = frame.type === "result" || (isOurs && frame.reason === "upstream_failed");
    if (isKept) this.#desk.ctx.storage.sql.exec("UPDATE upstream_resources SET is_taken = 1 WHERE uri = ?", uri);
    else this.#forget(uri);
    if (frame.type === "result") return { kind: "taken" };
    return isOurs && frame.reason !== "refused_by_device" ? { kind: "later" } : { kind: "refused", message };
  }

  #pending(uri: string): Asked | undefined {
    return [...this.#asked.values()].find((asked) => asked.uri === uri);
  }

  #row(uri: string): { instance: string; is_taken: number } | undefined {
    return this.#desk.ctx.storage.sql
      .exec<{ instance: string; is_taken: number }>("SELECT instance, is_taken FROM upstream_resources WHERE uri = ?", uri)
      .toArray()[0];
  }

  #forget(uri: string): void {
    this.#desk.ctx.storage.sql.exec("DELETE FROM upstream_resources WHERE uri = ?", uri);
  }

  #subscribe(uri: string): Asked | null {
    const callId = this.#send("resources/subscribe", uri);
    const link = this.#desk.links.current();
    if (callId === null || link === null) return null;
    const asked: Asked = { uri, answered: Promise.withResolvers<Taken>() };
    this.#asked.set(callId, asked);
    this.#desk.ctx.storage.sql.exec(
      `INSERT INTO upstream_resources (uri, instance, is_taken) VALUES (?, ?, 0)
       ON CONFLICT (uri) DO UPDATE SET instance = excluded.instance, is_taken = 0`,
      uri,
      link.attachment.instance,
    );
    return asked;
  }

  #send(method: string, uri: string): string | null {
    const callId = newCallId();
    const names = otherNames(this.#desk.catalogue.prefixes, "resources", uri);
    const frame: Call = {
      type: "call",
      callId,
      method,
      target: uri,
      ...(names.length === 0 ? {} : { names }),
      timeoutMs: LISTEN.subscribeMs,
      credit: LISTEN.answerBytes,
      caller: INTERNAL,
      client: { era: "legacy", protocol: "", capabilities: {} },
    };
    return this.#desk.links.current()?.send(frame, "{}") === true ? callId : null;
  }
}

async function withLimit(work: Promise<Taken>): Promise<Taken> {
  let timer: number | null = null;
  const limit = new Promise<Taken>((resolve) => {
    timer = setTimeout(() => resolve({ kind: "later" }), LISTEN.subscribeMs);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}
