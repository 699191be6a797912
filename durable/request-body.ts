/**
 * A request on its way into the object. A large one comes as a stream, which is read only once its bytes are booked: what
 * has no room here never comes (docs/adr/0041).
 */
import { QUEUE, TUNNEL } from "../src/limits.ts";
import type { Payload } from "../src/tunnel/codec.ts";
import { utf8Length } from "../src/tunnel/utf8.ts";
import type { Desk } from "./desk.ts";
import type { CallRequest, Refusal, RequestBody } from "./rpc.ts";

/** A request that is here as a whole. */
export type Received = Omit<CallRequest, "payload" | "body"> & { payload: Payload };

const BUSY: Refusal = {
  kind: "failure",
  failure: { reason: "rate_limited", outcome: "not_started", data: { retryAfterMs: QUEUE.retryAfterMs } },
};
const SLOW: Refusal = { kind: "failure", failure: { reason: "tunnel_lost", outcome: "not_started" } };

type Reception = { ok: true; request: Received } | { ok: false; refusal: Refusal };

/** Books a request's bytes under its call id and takes them in. Whoever refuses it later gives the bytes back. */
export async function receive(desk: Desk, { payload, body, ...request }: CallRequest): Promise<Reception> {
  const bytes = body?.bytes ?? utf8Length(payload);
  if (!desk.held.take(request.callId, bytes)) return turnAway({ body }, BUSY);
  if (body === undefined) return { ok: true, request: { ...request, payload } };
  try {
    const whole = await read(body);
    if (whole !== null) return { ok: true, request: { ...request, payload: whole } };
  } catch (error) {
    desk.held.give(request.callId);
    throw error; // The edge is gone, or broke its word: nobody waits for an answer.
  }
  desk.held.give(request.callId);
  return { ok: false, refusal: SLOW };
}

/** Refuses a request without reading it. */
export async function turnAway({ body }: { body?: RequestBody | undefined }, refusal: Refusal): Promise<Reception> {
  await body?.stream.cancel();
  return { ok: false, refusal };
}

/** The whole body, or null when it takes too long. Rejects when it is not as long as announced. */
async function read({ bytes, stream }: RequestBody): Promise<Uint8Array | null> {
  const whole = new Uint8Array(bytes);
  const reader = stream.getReader();
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    void reader.cancel("too slow").catch(() => undefined); // What it says is said by `read` as well.
  }, TUNNEL.bodyMs);
  try {
    let at = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (isLate) return null;
      if (done && at === bytes) return whole;
      if (done || at + value.length > bytes) throw new Error("a body of another length than announced");
      whole.set(value, at);
      at += value.length;
    }
  } finally {
    clearTimeout(timer);
  }
}
