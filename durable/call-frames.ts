/**
 * What the agent sends for a call. A frame for a call that is over, or that lives on another link, is ignored: answers
 * count only from the socket the call was sent on, or its successor after attaching. A frame that breaks a rule of its
 * call ends that call only.
 */
import type { Failure } from "../src/errors.ts";
import { CALL } from "../src/limits.ts";
import { encode, payloadBytes, type Payload } from "../src/tunnel/codec.ts";
import type { AgentFrame, Ask, Result } from "../src/tunnel/frames.ts";
import { askOpened } from "./call-asks.ts";
import { cancelCall, endCall, grantCredit, waitFor } from "./call-end.ts";
import { noteOutcome } from "./call-notes.ts";
import type { Desk } from "./desk.ts";
import { isProof } from "./link-changes.ts";
import type { Link } from "./links.ts";
import type { PendingCall } from "./pending-calls.ts";

/** Frames of one call; a chunk names its call as its stream. */
export type CallFrame = Extract<AgentFrame, { type: "ack" | "event" | "ask" | "result" | "error" | "chunk" }>;

interface Arrival {
  frame: CallFrame;
  payload: Payload | undefined;
  message: string | Uint8Array;
}

const encoder = new TextEncoder();

/** Takes one frame of a call. */
export function onCallFrame(desk: Desk, link: Link, arrival: Arrival): void {
  const { frame } = arrival;
  const call = desk.pending.get(frame.type === "chunk" ? frame.stream : frame.callId);
  if (call === undefined || call.generation !== link.generation || call.isComplete) return;
  acknowledge(desk, link, call);
  switch (frame.type) {
    case "ack":
      return;
    case "event":
      desk.watchers.event(call, frame.method, arrival.payload);
      return onEvent(desk, call, frame.seq, arrival);
    case "ask":
      return onAsk(desk, call, frame, arrival);
    case "result":
      return onResult(desk, call, frame, arrival);
    case "error":
      return onOutcome(desk, call, frame.seq, believed(desk, call, frame, arrival));
    case "chunk":
      return onChunk(desk, call, frame.offset, arrival);
  }
}

/** Any frame of a call proves that it, and all that was written before it, has arrived. */
function acknowledge(desk: Desk, link: Link, call: PendingCall): void {
  call.waits.delete("held");
  if (call.isAcknowledged) return;
  call.isAcknowledged = true;
  call.request = undefined;
  call.upload = undefined;
  call.wasWhole = true;
  desk.held.give(call.id);
  call.waits.delete("ack");
  link.arrived(call.mark);
}

function onEvent(desk: Desk, call: PendingCall, seq: number, arrival: Arrival): void {
  if (seq <= call.seq) return; // A replay of what the edge has.
  if (call.outcomeBytes !== undefined) return breach(desk, call, "an event after the outcome");
  const bytes = take(desk, call, arrival.payload);
  if (bytes === null) return;
  call.seq = seq;
  pass(desk, call, arrival, bytes, false);
}

function onAsk(desk: Desk, call: PendingCall, frame: Ask, arrival: Arrival): void {
  if (frame.seq <= call.seq) return;
  if (call.outcomeBytes !== undefined) return breach(desk, call, "a question after the outcome");
  if (call.asks.has(frame.askId)) return breach(desk, call, "two questions with one id");
  const bytes = take(desk, call, arrival.payload);
  if (bytes === null) return;
  call.seq = frame.seq;
  if (askOpened(desk, call, frame.askId, arrival.message)) pass(desk, call, arrival, bytes, false);
}

function onResult(desk: Desk, call: PendingCall, frame: Result, arrival: Arrival): void {
  if (frame.bytes === undefined) return onOutcome(desk, call, frame.seq, arrival);
  if (frame.bytes > CALL.maxResultBytes) {
    return end(desk, call, { reason: "too_large", outcome: "unknown", data: { size: frame.bytes, cap: CALL.maxResultBytes } });
  }
  if (arrival.payload !== undefined) return breach(desk, call, "an announced payload inside its announcement");
  if (call.outcomeBytes !== undefined && call.outcomeBytes !== frame.bytes) return breach(desk, call, "an outcome of two sizes");
  const isKnown = frame.seq <= call.seq;
  const isWhole = call.offset >= frame.bytes;
  call.outcomeBytes = frame.bytes;
  call.seq = Math.max(call.seq, frame.seq);
  ranToItsEnd(call);
  if (!isKnown) pass(desk, call, arrival, 0, isWhole);
  else if (isWhole) return breach(desk, call, "nothing is left to continue");
  if (!isWhole) {
    waitFor(desk, call, "flow", desk.now() + CALL.stallMs);
    grantCredit(desk, call);
  }
}

/** A word that a call did not begin, from a machine that cannot know, is taken as no knowledge. */
function believed(desk: Desk, call: PendingCall, frame: Extract<AgentFrame, { type: "error" }>, arrival: Arrival): Arrival {
  if (frame.origin !== "agent" || frame.outcome !== "not_started" || isProof(desk, call)) return arrival;
  const doubted = { ...frame, outcome: "unknown" } as const;
  return { ...arrival, frame: doubted, message: encode(doubted, arrival.payload) };
}

/**
 * An outcome in one message. One that the edge has the header of came in chunks before the link broke: what is missing
 * of it goes on as one more chunk.
 */
function onOutcome(desk: Desk, call: PendingCall, seq: number, arrival: Arrival): void {
  const isContinued = arrival.frame.type === "result" && seq <= call.seq;
  if (arrival.frame.type === "result" && !isContinued && call.outcomeBytes !== undefined) return breach(desk, call, "two outcomes");
  const bytes = take(desk, call, arrival.payload);
  if (bytes === null) return;
  const whole = isContinued ? restOf(call, arrival.payload) : arrival;
  if (whole === null) return breach(desk, call, "an outcome that ends before its offset");
  call.seq = Math.max(call.seq, seq);
  ranToItsEnd(call);
  pass(desk, call, whole, bytes, true);
}

function restOf(call: PendingCall, payload: Payload | undefined): Arrival | null {
  const whole = typeof payload === "string" ? encoder.encode(payload) : (payload ?? new Uint8Array());
  if (whole.length <= call.offset) return null;
  const rest = whole.subarray(call.offset);
  const frame = { type: "chunk", stream: call.id, offset: call.offset } as const;
  return { frame, payload: rest, message: encode(frame, rest) };
}

function onChunk(desk: Desk, call: PendingCall, offset: number, arrival: Arrival): void {
  const total = call.outcomeBytes;
  if (total === undefined) return breach(desk, call, "a chunk without its outcome");
  if (offset !== call.offset) return breach(desk, call, "a chunk at a wrong offset");
  const bytes = take(desk, call, arrival.payload);
  if (bytes === null) return;
  if (bytes === 0 || offset + bytes > total) return breach(desk, call, "more or less than was announced");
  call.offset += bytes;
  waitFor(desk, call, "flow", desk.now() + CALL.stallMs);
  pass(desk, call, arrival, bytes, call.offset === total);
}

/** Books a payload against the call's credit. Null when that ended the call. */
function take(desk: Desk, call: PendingCall, payload: Payload | undefined): number | null {
  const bytes = payloadBytes(payload);
  if (bytes === 0 || desk.flow.receive(call.id, bytes)) return bytes;
  breach(desk, call, "more bytes than its credit");
  return null;
}

/** Hands a message to whoever is attached. Without anybody it is dropped: the agent repeats it for who comes next. */
function pass(desk: Desk, call: PendingCall, arrival: Arrival, bytes: number, isLast: boolean): void {
  call.notes.bytesOut += bytes;
  if (arrival.frame.type === "result" || arrival.frame.type === "error") noteOutcome(call.notes, arrival.frame);
  if (arrival.frame.type === "result") desk.lastCallAt = desk.now();
  if (isLast) complete(desk, call);
  if (call.sink === undefined) {
    desk.flow.read(call.id, bytes);
    if (isLast || arrival.frame.type === "result") forget(desk, call);
    return;
  }
  call.sink.deliver({ ...arrival, bytes, isLast });
}

/** The agent has sent everything: its place is free, and only a reader's pace is left to wait for. */
function complete(desk: Desk, call: PendingCall): void {
  call.isComplete = true;
  desk.flow.finish(call.id);
  for (const wait of ["end", "input", "link"] as const) call.waits.delete(wait);
  waitFor(desk, call, "flow", desk.now() + CALL.stallMs);
}

/** An outcome that nobody is attached for. A legacy call ran to its end as promised; a modern one may still be asked for. */
function forget(desk: Desk, call: PendingCall): void {
  if (call.waits.has("attach")) return;
  endCall(desk, call);
  desk.delivered.add(call.id);
}

/** The call's own time is over with its outcome; what is left is transport. */
function ranToItsEnd(call: PendingCall): void {
  call.asks.clear();
  call.waits.delete("end");
  call.waits.delete("input");
}

function breach(desk: Desk, call: PendingCall, what: string): void {
  end(desk, call, { reason: "upstream_failed", outcome: "unknown", message: `The device broke the tunnel protocol: ${what}.` });
}

function end(desk: Desk, call: PendingCall, failure: Failure): void {
  cancelCall(desk, call, "caller_left", failure);
}
