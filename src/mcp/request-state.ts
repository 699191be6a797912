/**
 * The `requestState` of an input round that the relay made itself, because a legacy upstream's request parked a call.
 * It is a pointer, never an authority: it names the parked call, and the agent decides whether that call still waits
 * and belongs to the grant. Sealed, so that it cannot be read or changed; bound to device, grant, request and time.
 */
import { z } from "zod";
import { CALL } from "../limits.ts";
import type { EdgeContext } from "./context.ts";
import type { JsonObject } from "./json-rpc.ts";

/** States with this prefix are ours; every other one belongs to the upstream and passes untouched. */
const PREFIX = "ll1.";

const Sealed = z.strictObject({
  callId: z.string(),
  grant: z.string(),
  /** Digest of method, target and params: the retry has to be the same request. */
  request: z.string(),
  /** Position after the last ask shown. */
  seq: z.int().nonnegative(),
  /** Ids of the asks shown. */
  asked: z.array(z.string()),
  /** Epoch ms. */
  expiresAt: z.number(),
});

/** Which request a state belongs to. */
export interface StateRequest {
  method: string;
  target: string | undefined;
  /** Params without target, `_meta`, `inputResponses` and `requestState`. */
  params: JsonObject;
}

/** True for a state that the relay made. */
export function isOurState(state: unknown): state is string {
  return typeof state === "string" && state.startsWith(PREFIX);
}

/** Where a parked call stands: its id, the position after the last ask shown, and the ids of the asks shown. */
export interface StatePointer {
  callId: string;
  seq: number;
  asked: string[];
}

/** The state for a parked call. */
export async function sealState(context: EdgeContext, request: StateRequest, pointer: StatePointer): Promise<string> {
  const content: z.infer<typeof Sealed> = {
    ...pointer,
    grant: context.grant,
    request: await digest(request),
    // Later than the parked call's own end, so that for a while the object can say that it waited too long.
    expiresAt: context.now() + CALL.inputTimeoutMs + CALL.expiredMs,
  };
  return PREFIX + (await context.seal(JSON.stringify(content)));
}

export type OpenedState = ({ ok: true } & StatePointer) | { ok: false; why: "invalid" | "expired" };

/** The parked call a state points at. A changed, foreign or borrowed one is `invalid`, whatever is wrong with it. */
export async function openState(context: EdgeContext, request: StateRequest, state: string): Promise<OpenedState> {
  let content: z.infer<typeof Sealed>;
  try {
    content = Sealed.parse(JSON.parse(await context.unseal(state.slice(PREFIX.length))));
  } catch {
    return { ok: false, why: "invalid" }; // sealed by nobody here, or for another device
  }
  if (content.grant !== context.grant || content.request !== (await digest(request))) return { ok: false, why: "invalid" };
  if (content.expiresAt <= context.now()) return { ok: false, why: "expired" };
  return { ok: true, callId: content.callId, seq: content.seq, asked: content.asked };
}

async function digest(request: StateRequest): Promise<string> {
  const text = canonicalJson([request.method, request.target ?? null, request.params]);
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return btoa(String.fromCharCode(...new Uint8Array(hash)));
}

/** JSON with sorted keys, so that a client may rebuild its params in another order. Depth is bounded by the body's. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(",")}}`;
}
