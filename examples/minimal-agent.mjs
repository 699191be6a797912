// A whole agent without dependencies: three tools on the tunnel protocol of docs/protocol.md, in frames of 4 KiB.
//   LONGLINE_DEVICE_KEY=llk_… node minimal-agent.mjs https://relay.example
// It claims: hello, welcome, catalogue, call, ack, event, result, error, chunk, credit, cancel, attach, delivered, probe, pong, bye.
import { createHash, randomBytes } from "node:crypto";
import { hostname } from "node:os";

const MAX_FRAME = 4096;
const relay = new URL("/tunnel", process.argv[2] ?? "http://127.0.0.1:8787");
const { request } = await import(relay.protocol === "https:" ? "node:https" : "node:http");
const deviceKey = process.env.LONGLINE_DEVICE_KEY ?? "";
const hash = (value) => createHash("sha256").update(value).digest("base64url");
const tell = (line) => process.stderr.write(`${line}\n`);

// ---- The tools: each gets its arguments, a way to tell progress, and the signal of its cancellation.
const text = (value) => ({ content: [{ type: "text", text: value }], isError: false });
const listing = (name, description, properties) => ({ name, description, inputSchema: { type: "object", properties } });
const tool = (name, about, properties, run) => [name, { run, listed: listing(name, about, properties) }];
const tools = new Map([
  tool("echo", "says what it was told", { text: { type: "string" } }, (args) => text(String(args.text))),
  tool("fill", "gives a text of so many bytes", { bytes: { type: "integer" } }, ({ bytes = 0 }) => text("x".repeat(Math.min(bytes, 8e6)))),
  tool("wait", "waits, and tells how far it is", { ms: { type: "integer" } }, async ({ ms = 1000 }, progress, signal) => {
    for (let step = 1; step <= 4 && !signal.aborted; step += 1) {
      await new Promise((resolve) => setTimeout(resolve, ms / 4));
      progress({ progress: step, total: 4 });
    }
    return text("done");
  }),
]);
const listed = { tools: [...tools.values()].map((one) => one.listed) };
const serverInfo = { name: "minimal-agent", version: "1.0.0" };
const discover = { capabilities: { tools: {} }, serverInfo };
const catalogue = Buffer.from(JSON.stringify({ discover, ...listed, resources: [], resourceTemplates: [], prompts: [] }));
const digest = hash(catalogue);
const upstreams = [{ alias: "tools", state: "ready", era: "modern", lastRoundTripMs: 0, lastRoundTripAt: null, problem: null }];
const limits = { maxFrameBytes: MAX_FRAME, maxConcurrentCalls: 4 };
const self = { installation: `i_${hash(hostname() + deviceKey).slice(0, 22)}`, instance: `n_${hash(randomBytes(16))}` };

// ---- Calls: one is kept until it was delivered, so that a new link can ask for it again, and it never begins twice.
const calls = new Map(); // callId -> { abort, items: [[frame, payload]], sent: items gone, offset: bytes gone of the next, credit, isTold }
const failed = (reason, outcome, message) => ({ type: "error", origin: "agent", reason, outcome, message });
let [link, tries] = [null, 0];
const send = (frame, payload) => link?.(frame, payload);

/** Sends what the call has and its credit allows: small messages whole, a large result announced and then in chunks. */
function pump(callId, call, moreCredit = 0) {
  call.credit += moreCredit;
  while (call.isAttached && call.sent < call.items.length) {
    const [frame, payload] = call.items[call.sent];
    const isWhole = payload.length < MAX_FRAME - 512 && !call.isTold;
    if (!isWhole && !call.isTold) send({ ...frame, bytes: payload.length });
    call.isTold ||= !isWhole;
    const piece = payload.subarray(call.offset, call.offset + (isWhole ? payload.length : Math.min(call.credit, MAX_FRAME - 128)));
    if (piece.length > call.credit || (piece.length === 0 && call.offset < payload.length)) return; // More credit will come.
    send(isWhole ? frame : { type: "chunk", stream: callId, offset: call.offset }, piece);
    call.credit -= piece.length;
    call.offset += piece.length;
    if (call.offset >= payload.length) Object.assign(call, { sent: call.sent + 1, offset: 0, isTold: false });
  }
}

function say(callId, frame, value) {
  const call = calls.get(callId);
  call?.items.push([{ ...frame, callId, seq: call.items.length + 1 }, Buffer.from(value === undefined ? "" : JSON.stringify(value))]);
  if (call) pump(callId, call);
}

async function run({ callId, method, target, timeoutMs, progress, credit, bytes }, params) {
  if (calls.has(callId)) return;
  const abort = new AbortController();
  calls.set(callId, { abort, items: [], sent: 0, offset: 0, credit, isTold: false, isAttached: true });
  const result = { type: "result", protocol: "2026-07-28", resultType: "complete" };
  const refuse = (code, message) => say(callId, { type: "error", origin: "upstream", protocol: "2026-07-28", code, message });
  if (bytes !== undefined) return say(callId, failed("too_large", "not_started", "The arguments are too large for this device."));
  if (method === "tools/list") return say(callId, result, listed);
  if (method !== "tools/call") return refuse(-32601, "Only tools are here.");
  if (!tools.has(target)) return refuse(-32602, "There is no such tool.");
  send({ type: "ack", callId });
  const late = setTimeout(() => {
    say(callId, failed("device_timeout", "unknown", "The tool took too long."));
    abort.abort();
  }, timeoutMs);
  const step = (value) => progress && !abort.signal.aborted && say(callId, { type: "event", method: "notifications/progress" }, value);
  try {
    const value = await tools.get(target).run(JSON.parse(params || "{}").arguments ?? {}, step, abort.signal);
    if (!abort.signal.aborted) say(callId, result, value);
  } catch {
    say(callId, failed("upstream_failed", "unknown", "The tool failed."));
  }
  clearTimeout(late);
}

/** A new link goes on after what the relay has of a call. */
function attach({ callId, seq, offset, credit }) {
  const call = calls.get(callId);
  if (!call) return send({ ...failed("agent_restarted", "unknown", "The device does not know this call any more."), callId, seq: seq + 1 });
  const isTold = seq > 0 && call.items[seq - 1]?.[0].type === "result";
  Object.assign(call, { sent: isTold ? seq - 1 : seq, isTold, offset: isTold ? offset : 0, credit, isAttached: true });
  return pump(callId, call);
}

const handlers = {
  welcome: ({ device, catalogue: wanted }) => {
    tell(`online as ${JSON.stringify(device)}`);
    if (wanted === "send") send({ type: "catalogue", digest }, catalogue);
  },
  call: (frame, payload) => void run(frame, payload.toString()),
  attach,
  probe: ({ probeId }) => send({ type: "pong", probeId, upstreams }),
  delivered: ({ callIds }) => callIds.forEach((callId) => calls.delete(callId)),
  cancel: ({ callId }) => calls.get(callId)?.abort.abort() ?? calls.delete(callId),
  credit: ({ stream, bytes }) => calls.has(stream) && pump(stream, calls.get(stream), bytes),
};

// ---- The link: a WebSocket client (RFC 6455) as far as the tunnel needs it.
const [TEXT, BINARY, CLOSE, PING, PONG] = [1, 2, 8, 9, 10];

/** One masked frame; this agent sends less than 64 KiB at once. */
function masked(opcode, data) {
  const mask = randomBytes(4);
  const length = data.length < 126 ? [0x80 | data.length] : [0x80 | 126, data.length >> 8, data.length & 255];
  return Buffer.concat([Buffer.from([0x80 | opcode, ...length]), mask, data.map((byte, i) => byte ^ mask[i & 3])]);
}

/** Calls back with each message; pieces of one are put together, and control frames may come between them. */
function reader(onMessage) {
  let [waiting, parts] = [Buffer.alloc(0), []];
  return (bytes) => {
    waiting = Buffer.concat([waiting, bytes]);
    while (waiting.length >= 2) {
      const [opcode, isLast, short] = [waiting[0] & 15, waiting[0] >= 0x80, waiting[1] & 127];
      if (short === 127) throw new Error("a frame over the size that was agreed");
      const head = short === 126 ? 4 : 2;
      const end = waiting.length < head ? Infinity : head + (short === 126 ? waiting.readUInt16BE(2) : short);
      if (waiting.length < end) return;
      const data = waiting.subarray(head, end);
      waiting = waiting.subarray(end);
      if (opcode < CLOSE) parts.push(data);
      if (opcode >= CLOSE) onMessage(opcode, data);
      else if (isLast) onMessage(TEXT, Buffer.concat(parts.splice(0)));
    }
  };
}

function again(why) {
  const ms = 500 + Math.random() * Math.min(30_000, 500 * 2 ** (tries += 1));
  tell(`offline: ${why}; next try in ${(ms / 1000).toFixed(1)} s`);
  setTimeout(dial, ms);
}

function dial() {
  const headers = { upgrade: "websocket", connection: "Upgrade", "sec-websocket-version": "13", "sec-websocket-protocol": "longline.v1" };
  const secret = { "sec-websocket-key": randomBytes(16).toString("base64"), authorization: `Bearer ${deviceKey}` };
  const upgrade = request(relay, { headers: { ...headers, ...secret }, timeout: 15_000 });
  upgrade.on("timeout", () => upgrade.destroy(new Error("no answer"))).on("error", (error) => again(error.message));
  upgrade.on("upgrade", (_response, socket, first) => open(socket, first));
  upgrade.on("response", ({ statusCode }) => (statusCode === 401 ? process.exit(3) : upgrade.destroy(new Error(`HTTP ${statusCode}`))));
  upgrade.end();
}

function open(socket, first) {
  let [heardAt, code] = [Date.now(), 1006];
  const write = (opcode, data) => socket.write(masked(opcode, Buffer.from(data)));
  const beat = setInterval(() => (Date.now() - heardAt > 75_000 ? socket.destroy() : write(TEXT, "ping")), 60_000);
  const read = reader((opcode, data) => {
    heardAt = Date.now();
    if (opcode === PING) write(PONG, data);
    if (opcode === CLOSE) code = data.length >= 2 ? data.readUInt16BE(0) : 1000;
    if (opcode === CLOSE) socket.end(masked(CLOSE, data));
    if (opcode >= CLOSE || data.toString() === "pong") return;
    const newline = data.indexOf(10) < 0 ? data.length : data.indexOf(10);
    const header = JSON.parse(data.toString("utf8", 0, newline));
    handlers[header.type]?.(header, data.subarray(newline + 1)); // answer: nothing is asked here. drain: the link ends soon.
  });
  socket.on("data", (bytes) => {
    try {
      read(bytes);
    } catch (error) {
      socket.destroy(error);
    }
  });
  socket.setTimeout(0);
  socket.on("error", (error) => tell(`the link broke: ${error.name}`));
  socket.on("close", () => {
    clearInterval(beat);
    link = null;
    for (const call of calls.values()) call.isAttached = false;
    if (code >= 4100 && code < 4200) process.exit(3); // Stops for good: docs/protocol.md, "Close codes".
    again(`closed (${code})`);
  });
  const bytesOf = (frame, payload) => Buffer.concat([Buffer.from(`${JSON.stringify(frame)}\n`), payload]);
  link = (frame, payload) => (payload?.length > 0 ? write(BINARY, bytesOf(frame, payload)) : write(TEXT, JSON.stringify(frame)));
  const state = { catalogue: digest, held: [...calls.keys()], asks: [], upstreams };
  send({ type: "hello", protocol: { min: 1, max: 1 }, agent: serverInfo, ...self, limits, ...state });
  tries = 0;
  if (first.length > 0) socket.unshift(first);
}

process.on("SIGTERM", () => setTimeout(() => process.exit(0), 200, send({ type: "bye", reason: "stopped" })));
dial();
