/** What the audit will say of a call, gathered while it runs. Never arguments or results. */
import { z } from "zod";
import type { Failure } from "../src/errors.ts";
import { AUDIT } from "../src/limits.ts";
import type { AgentFrame, CancelReason, ClientFacts } from "../src/tunnel/frames.ts";
import { type Payload, payloadBytes } from "../src/tunnel/codec.ts";
import type { CallRequest } from "./rpc.ts";

/** How a call can end, in the audit's words. */
const Ending = z.enum(["ok", "error", "failed", "cancelled"]);
type Ending = z.infer<typeof Ending>;

/** Parked calls keep their notes in storage, so the shape only ever grows. */
export const CallNotes = z.object({
  /** Epoch ms. */
  startedAt: z.number(),
  method: z.string().optional(),
  target: z.string().optional(),
  client: z.string().optional(),
  clientVersion: z.string().optional(),
  clientProtocol: z.string().optional(),
  upstreamProtocol: z.string().optional(),
  bytesIn: z.number(),
  bytesOut: z.number(),
  /** How it ended so far; the last word counts. */
  outcome: Ending.optional(),
  reason: z.string().optional(),
});
export type CallNotes = z.infer<typeof CallNotes>;

/** Begins the notes of a request; of a call that this instance only heard of by its id, little is known. */
export function beginNotes(now: number, call?: NotedCall, client?: ClientFacts): CallNotes {
  return {
    startedAt: now,
    bytesIn: call?.payload === undefined ? 0 : payloadBytes(call.payload),
    bytesOut: 0,
    ...(call === undefined ? {} : whatWasAsked(call)),
    ...(client === undefined ? {} : whoAsked(client)),
  };
}

/** What of a request is noted. */
export type NotedCall = Pick<CallRequest, "method" | "target" | "ref"> & { payload?: Payload };

function whatWasAsked(call: NotedCall): Partial<CallNotes> {
  const target = call.target ?? refTarget(call.ref);
  return { method: short(call.method), ...(target === undefined ? {} : { target: short(target) }) };
}

function refTarget(ref: Record<string, unknown> | undefined): string | undefined {
  const name = ref?.["name"] ?? ref?.["uri"];
  return typeof name === "string" ? name : undefined;
}

function whoAsked(client: ClientFacts): Partial<CallNotes> {
  const { name, version } = client.info ?? {};
  return {
    clientProtocol: client.protocol,
    ...(typeof name === "string" ? { client: short(name) } : {}),
    ...(typeof version === "string" ? { clientVersion: short(version) } : {}),
  };
}

/** Foreign text in a row is bounded here; whoever prints it cleans it. */
function short(text: string): string {
  return text.slice(0, AUDIT.textLength);
}

/** The agent's last frame of a call says how it ended. */
export function noteOutcome(notes: CallNotes, frame: AgentFrame): void {
  if (frame.type === "result") notes.upstreamProtocol = short(frame.protocol);
  if (frame.type !== "error") return noteEnd(notes, "ok");
  if (frame.origin === "agent") return noteEnd(notes, frame.reason === "cancelled" ? "cancelled" : "failed", frame.reason);
  notes.upstreamProtocol = short(frame.protocol);
  noteEnd(notes, "error", String(frame.code));
}

/** A failure of ours ends it; a cancellation says by whom. */
export function noteFailure(notes: CallNotes, failure: Failure, cancelled?: CancelReason): void {
  if (failure.reason === "cancelled") return noteEnd(notes, "cancelled", cancelled ?? notes.reason);
  noteEnd(notes, "failed", failure.reason);
}

function noteEnd(notes: CallNotes, outcome: Ending, reason?: string): void {
  notes.outcome = outcome;
  if (reason === undefined) delete notes.reason;
  else notes.reason = reason;
}
