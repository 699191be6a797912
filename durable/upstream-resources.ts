/**
 * What the agent is subscribed to, by grant: each resource once for a grant, however many of its listeners and sessions
 * want it, so that nobody's end is somebody else's. Asked by internal calls; asked again when another run of the agent
 * comes. The agent treats both requests as a set, so repeating one changes nothing.
 */
import { LISTEN } from "../src/limits.ts";
import { otherNames } from "../src/policy/other-names.ts";
import { type AgentError, type AgentFrame, type Call, newCallId, type Result, type UpstreamError } from "../src/tunnel/frames.ts";
import type { Desk } from "./desk.ts";

/** What became of a request: taken by the device, to be taken when it is back, or refused by the upstream with its own error. */
export type Taken = { kind: "taken" } | { kind: "later" } | { kind: "refused"; message: string | Uint8Array };

/** A resource, and a grant whose listeners want it. */
export interface ResourceWant {
  grant: string;
  uri: string;
}

/** In the end of a subscription: no grant wants the resource. */
export const EVERYBODY = "";

interface Asked {
  want: ResourceWant;
  answered: PromiseWithResolvers<Taken>;
}

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
  async want(want: ResourceWant): Promise<Taken> {
    const link = this.#desk.links.current();
    if (link === null) return { kind: "later" };
    const row = this.#row(want);
    if (row !== undefined && row.is_taken === 1 && row.instance === link.attachment.instance) return { kind: "taken" };
    const asked = this.#pending(want) ?? this.#subscribe(want);
    return asked === null ? { kind: "later" } : withLimit(asked.answered.promise);
  }

  /** Makes what the agent is subscribed to equal to what is wanted. Asks only for differences. */
  keep(wants: readonly ResourceWant[]): void {
    const wanted = new Map(wants.map((want) => [keyOf(want), want]));
    const link = this.#desk.links.current();
    const instance = link?.attachment.instance;
    const rows = this.#desk.ctx.storage.sql
      .exec<{ grant: string; uri: string; instance: string; is_taken: number }>(
        "SELECT grant_id AS grant, uri, instance, is_taken FROM upstream_resources",
      )
      .toArray();
    const held = new Set<string>();
    for (const row of rows) {
      // Another run of the agent begins without any.
      const isHere = instance === undefined || row.instance === instance;
      if (isHere && wanted.has(keyOf(row))) {
        if (row.is_taken === 1 || this.#pending(row) !== undefined) held.add(keyOf(row));
      } else {
        this.#forget(row);
        if (isHere) this.end(row);
      }
    }
    if (link === null) return;
    for (const [key, want] of wanted) if (!held.has(key)) this.#subscribe(want);
  }

  /** Ends a subscription at the agent, also one that this object does not know of. */
  end(want: ResourceWant): void {
    const callId = this.#send("resources/unsubscribe", want);
    if (callId !== null) this.#ending.add(callId);
  }

  /** The link is lost: requests without an answer are asked again on the next one. */
  linkLost(): void {
    this.#ending.clear();
    for (const [callId, asked] of this.#asked) {
      this.#asked.delete(callId);
      this.#forget(asked.want);
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
    if (asked !== undefined) asked.answered.resolve(this.#answer(asked.want, frame, message));
    return true;
  }

  #answer(want: ResourceWant, frame: Result | AgentError | UpstreamError, message: string | Uint8Array): Taken {
    const isOurs = frame.type === "error" && frame.origin === "agent";
    // A failed upstream is asked by the agent itself when it is back; anything else the agent did not keep.
    const isKept = frame.type === "result" || (isOurs && frame.reason === "upstream_failed");
    const { grant, uri } = want;
    if (isKept) this.#desk.ctx.storage.sql.exec("UPDATE upstream_resources SET is_taken = 1 WHERE grant_id = ? AND uri = ?", grant, uri);
    else this.#forget(want);
    if (frame.type === "result") return { kind: "taken" };
    return isOurs && frame.reason !== "refused_by_device" ? { kind: "later" } : { kind: "refused", message };
  }

  #pending({ grant, uri }: ResourceWant): Asked | undefined {
    return [...this.#asked.values()].find(({ want }) => want.grant === grant && want.uri === uri);
  }

  #row({ grant, uri }: ResourceWant): { instance: string; is_taken: number } | undefined {
    return this.#desk.ctx.storage.sql
      .exec<{ instance: string; is_taken: number }>(
        "SELECT instance, is_taken FROM upstream_resources WHERE grant_id = ? AND uri = ?",
        grant,
        uri,
      )
      .toArray()[0];
  }

  #forget({ grant, uri }: ResourceWant): void {
    this.#desk.ctx.storage.sql.exec("DELETE FROM upstream_resources WHERE grant_id = ? AND uri = ?", grant, uri);
  }

  #subscribe(want: ResourceWant): Asked | null {
    const callId = this.#send("resources/subscribe", want);
    const link = this.#desk.links.current();
    if (callId === null || link === null) return null;
    const asked: Asked = { want, answered: Promise.withResolvers<Taken>() };
    this.#asked.set(callId, asked);
    this.#desk.ctx.storage.sql.exec(
      `INSERT INTO upstream_resources (grant_id, uri, instance, is_taken) VALUES (?, ?, ?, 0)
       ON CONFLICT (grant_id, uri) DO UPDATE SET instance = excluded.instance, is_taken = 0`,
      want.grant,
      want.uri,
      link.attachment.instance,
    );
    return asked;
  }

  #send(method: string, { grant, uri }: ResourceWant): string | null {
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
      caller: { grant, label: "relay", member: "" },
      client: { era: "legacy", protocol: "", capabilities: {} },
    };
    return this.#desk.links.current()?.send(frame, "{}") === true ? callId : null;
  }
}

function keyOf({ grant, uri }: ResourceWant): string {
  return `${grant} ${uri}`;
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
