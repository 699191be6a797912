/**
 * Console: a device's calls as they happen, and cancelling one. The stream comes from a hibernating socket at the object,
 * and its comments are the edge's own: an idle page keeps no object awake.
 */
import { type Context, Hono } from "hono";
import { audited } from "../auth/admin-audit.ts";
import { tellObject } from "../auth/tell-object.ts";
import { webSession } from "../auth/web-session.ts";
import { devicePath } from "../console/paths.ts";
import { type AppEnv, configOf, tunnelOf } from "../env.ts";
import { ApiError } from "../errors.ts";
import { EDGE, LIVE } from "../limits.ts";
import { log } from "../log.ts";
import { EventStream, SSE_HEADERS } from "../mcp/sse.ts";
import { asciiJson } from "../tunnel/notices.ts";
import { WATCH_HEADER, WATCH_PATH, type WatchFacts } from "../tunnel/live.ts";
import { visibleDevice, visibleDevices } from "./api-devices.ts";
import { doneAt } from "./console-done.ts";
import { readForm } from "./form.ts";

/** Whose calls a person sees: null for all. */
function scopeOf(c: Context<AppEnv>): string | null {
  const { id, role } = c.get("member");
  return role === "owner" ? null : id;
}

async function watch(c: Context<AppEnv>): Promise<Response> {
  const device = await visibleDevice(c, c.req.param("name") ?? "");
  // An object that no agent ever dialled into does not exist, and looking must not make it.
  if (device.bornAt === null) throw new ApiError("not_found", "This device never connected.");
  const facts: WatchFacts = { member: scopeOf(c) };
  const headers = { Upgrade: "websocket", [WATCH_HEADER]: asciiJson(facts) };
  const { webSocket } = await tunnelOf(c.env, device.id).fetch(new Request(`https://object${WATCH_PATH}`, { headers }));
  if (webSocket === null) throw new ApiError("incomplete", "The device's object does not answer. Try again.");
  const keepAliveMs = configOf(c.env).runtime === "embedded" ? EDGE.embeddedKeepAliveMs : EDGE.keepAliveMs;
  return new Response(pipe(webSocket, { signal: c.req.raw.signal, keepAliveMs, mayGoOn: () => mayGoOn(c, facts) }), {
    headers: SSE_HEADERS,
  });
}

/** Whether the person is still signed in, in the same role, and may see the device. When D1 is away nothing changes. */
async function mayGoOn(c: Context<AppEnv>, facts: WatchFacts): Promise<boolean> {
  try {
    const session = await webSession(c);
    if (session === null || (session.role === "owner" ? null : session.memberId) !== facts.member) return false;
    return (await visibleDevices(c)).some(({ name }) => name === c.req.param("name"));
  } catch (error) {
    log("warn", "console.check-failed", { id: c.get("requestId"), error });
    return true;
  }
}

/** The messages of a socket as an event stream, which ends with whichever of the two ends first. */
function pipe(
  socket: WebSocket,
  { signal, keepAliveMs, mayGoOn }: { signal: AbortSignal; keepAliveMs: number; mayGoOn: () => Promise<boolean> },
): ReadableStream<Uint8Array> {
  let waiting = 0;
  let isOver = false;
  const end = (): boolean => {
    if (isOver) return false;
    isOver = true;
    clearInterval(timer);
    signal.removeEventListener("abort", abort);
    closeQuietly(socket);
    return true;
  };
  const abort = (): void => {
    if (end()) void stream.abort();
  };
  const close = (): void => {
    if (end()) void stream.close();
  };
  const stream = new EventStream(keepAliveMs, abort);
  const timer = setInterval(() => void mayGoOn().then((may) => (may ? undefined : close())), LIVE.checkMs);
  signal.addEventListener("abort", abort);
  socket.addEventListener("message", ({ data }) => {
    if (isOver || typeof data !== "string") return;
    waiting += 1;
    if (waiting > LIVE.waiting) return abort();
    void stream.event(data).finally(() => {
      waiting -= 1;
    });
  });
  socket.addEventListener("close", close);
  socket.addEventListener("error", close);
  socket.accept();
  return stream.readable;
}

function closeQuietly(socket: WebSocket): void {
  try {
    socket.close(1000);
  } catch {
    // Closed already, which is what was wanted.
  }
}

async function cancel(c: Context<AppEnv>): Promise<Response> {
  const form = await readForm(c);
  const device = await visibleDevice(c, c.req.param("name") ?? "");
  const callId = form.get("call") ?? "";
  const running = await tellObject(c.env, device.id, (stub) => stub.liveCalls(scopeOf(c)));
  // SECURITY: a call of another's grant is answered like one that is over.
  const call = running.state === "told" ? running.value.find(({ id }) => id === callId) : undefined;
  if (call === undefined) throw new ApiError("not_found", "This call is over.");
  await audited(c, { name: "call.cancel", target: call.target ?? call.method ?? callId, device }, async () => {
    const told = await tellObject(c.env, device.id, (stub) => stub.cancel(callId, "caller_asked"));
    if (told.state === "failed") throw new ApiError("incomplete", "The device's object did not confirm it. Try again.");
  });
  return doneAt(c, devicePath(device.name), "cancelled");
}

/** The routes of live calls. */
export function consoleLiveRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.get("/devices/:name/live", watch);
  app.post("/devices/:name/cancel", cancel);
  return app;
}
