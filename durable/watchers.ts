/**
 * People who watch a device's calls in the console: hibernating sockets between Worker and object, over which the object
 * tells what happens and nothing comes back. An idle watcher holds nothing in memory; without one, nothing is made up.
 */
import { z } from "zod";
import { LIVE } from "../src/limits.ts";
import { cleanText } from "../src/policy/clean-text.ts";
import { payloadText, type Payload } from "../src/tunnel/codec.ts";
import { type LiveCall, type LiveMessage, WATCH_HEADER, WATCH_PATH, WatchFacts } from "../src/tunnel/live.ts";
import { LISTEN_CLOSE } from "../src/tunnel/notices.ts";
import type { Desk } from "./desk.ts";
import type { PendingCall } from "./pending-calls.ts";
import { closeQuietly } from "./sockets.ts";

const TAG = "watcher";

const Attachment = z.strictObject({ v: z.literal(1), role: z.literal("watcher"), ...WatchFacts.shape, openedAt: z.number() });
type Attachment = z.infer<typeof Attachment>;

const Progress = z.object({ progress: z.number(), total: z.number().optional(), message: z.string().optional() });

/** Whether a request is the upgrade of a watcher. */
export function isWatchRequest(request: Request): boolean {
  return new URL(request.url).pathname === WATCH_PATH && request.headers.get("Upgrade")?.toLowerCase() === "websocket";
}

/** Whether a socket is a watcher's, whatever state it is in. */
export function isWatcher(ctx: DurableObjectState, socket: WebSocket): boolean {
  return ctx.getTags(socket).includes(TAG);
}

/** Answers the upgrade of a watcher with its socket, on which the present state comes first. */
export function answerWatcher(desk: Desk | null, request: Request): Response {
  const facts = readFacts(request.headers.get(WATCH_HEADER));
  if (facts === null) return new Response(null, { status: 400 });
  if (desk === null) return new Response(null, { status: 404 });
  const { 0: client, 1: server } = new WebSocketPair();
  makeRoom(desk.ctx);
  desk.ctx.acceptWebSocket(server, [TAG]);
  desk.watchers.changed();
  server.serializeAttachment({ v: 1, role: "watcher", ...facts, openedAt: desk.now() } satisfies Attachment);
  const open: LiveMessage = { type: "open", online: desk.links.current() !== null, calls: liveCalls(desk, facts.member) };
  server.send(JSON.stringify(open));
  return new Response(null, { status: 101, webSocket: client });
}

function readFacts(header: string | null): WatchFacts | null {
  try {
    const parsed = WatchFacts.safeParse(JSON.parse(header ?? ""));
    return parsed.success ? parsed.data : null;
  } catch {
    return null; // Not JSON: the same as any other header that is not ours.
  }
}

function makeRoom(ctx: DurableObjectState): void {
  const open = watchers(ctx).sort((a, b) => a.facts.openedAt - b.facts.openedAt);
  for (const { socket } of open.slice(0, Math.max(0, open.length - LIVE.watchers + 1)))
    closeQuietly(socket, LISTEN_CLOSE.superseded, "too many watch");
}

function watchers(ctx: DurableObjectState): { socket: WebSocket; facts: Attachment }[] {
  return ctx.getWebSockets(TAG).flatMap((socket) => {
    if (socket.readyState !== WebSocket.OPEN) return [];
    const parsed = Attachment.safeParse(socket.deserializeAttachment());
    return parsed.success ? [{ socket, facts: parsed.data }] : [];
  });
}

/** The calls in flight, oldest first: all, or those of one member's grants. */
export function liveCalls(desk: Desk, member: string | null): LiveCall[] {
  const mine = desk.pending.all().filter((call) => member === null || desk.grants.get(call.grant)?.member === member);
  return mine.slice(0, LIVE.calls).map((call) => liveCall(desk, call));
}

function liveCall(desk: Desk, { id, grant, notes }: PendingCall): LiveCall {
  return {
    id,
    startedAt: notes.startedAt,
    method: notes.method ?? null,
    target: notes.target ?? null,
    label: desk.grants.get(grant)?.label ?? null,
    client: notes.client ?? null,
  };
}

/** Tells the watchers of one device. */
export class Watchers {
  readonly #desk: Desk;
  /** When (epoch ms) the progress of a call was last told. */
  readonly #toldAt = new Map<string, number>();
  /** Whether anybody watches, as far as this instance knows: asked of the platform once, not on each call. */
  #isWatched: boolean | undefined;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /** A watcher came or went. */
  changed(): void {
    this.#isWatched = undefined;
  }

  /** A call is in flight. */
  began(call: PendingCall): void {
    this.#tell(call, () => ({ type: "began", call: liveCall(this.#desk, call) }));
  }

  /** A call's own notification; of progress a bounded number a second is told. */
  event(call: PendingCall, method: string, payload: Payload | undefined): void {
    if (method !== "notifications/progress") return;
    const now = this.#desk.now();
    if (now - (this.#toldAt.get(call.id) ?? 0) < LIVE.progressMs) return;
    this.#tell(call, () => {
      const progress = readProgress(payload);
      if (progress === null) return null;
      this.#toldAt.set(call.id, now);
      const { total, message } = progress;
      return {
        type: "progress",
        id: call.id,
        progress: progress.progress,
        total: total ?? null,
        message: message === undefined ? null : cleanText(message),
      };
    });
  }

  /** A call is over, or waits for a person's answer. */
  ended(call: PendingCall, isParked: boolean): void {
    this.#toldAt.delete(call.id);
    const { notes } = call;
    this.#tell(call, () => ({
      type: "ended",
      id: call.id,
      outcome: isParked ? "waiting" : (notes.outcome ?? "ok"),
      reason: isParked ? null : (notes.reason ?? null),
      durationMs: Math.max(0, this.#desk.now() - notes.startedAt),
    }));
  }

  /** Ends every watcher: the device is removed, or the relay stops. */
  endAll(why: "removed" | "stopped"): void {
    for (const { socket } of this.#all()) closeQuietly(socket, LISTEN_CLOSE.removed, why);
  }

  /** The device came or went. */
  link(online: boolean): void {
    for (const { socket } of this.#all()) send(socket, { type: "link", online });
  }

  /** The message is made only when somebody is there to hear it. */
  #tell(call: PendingCall, message: () => LiveMessage | null): void {
    const all = this.#all();
    if (all.length === 0) return;
    const member = this.#desk.grants.get(call.grant)?.member;
    const mine = all.filter(({ facts }) => facts.member === null || facts.member === member);
    const told = mine.length === 0 ? null : message();
    if (told !== null) for (const { socket } of mine) send(socket, told);
  }

  #all(): ReturnType<typeof watchers> {
    if (this.#isWatched === false) return [];
    const all = watchers(this.#desk.ctx);
    this.#isWatched = all.length > 0;
    return all;
  }
}

function send(socket: WebSocket, message: LiveMessage): void {
  try {
    socket.send(JSON.stringify(message));
  } catch {
    // Its close was not told yet; there is nobody to hear this.
  }
}

function readProgress(payload: Payload | undefined): z.infer<typeof Progress> | null {
  try {
    return Progress.safeParse(JSON.parse(payloadText(payload))).data ?? null;
  } catch {
    return null; // The device's own words; what is no progress is not shown.
  }
}
