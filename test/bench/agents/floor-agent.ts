/**
 * The floor's echo agents: `node floor-agent.ts URL…`, one WebSocket each. Prints `ready` when all are connected, and
 * ends with its standard input.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { EVENT_PAUSE_MS, FLOOR_CHUNK_BYTES, monotonicMs } from "./shared.ts";

async function answer(socket: WebSocket, message: string): Promise<void> {
  const cut = message.indexOf("\n");
  const [id = "", kind = "", size = "0"] = message.slice(0, cut).split(" ");
  if (kind === "call") socket.send(`${id} end\n${ofLength(message.slice(cut + 1), Number(size))}`);
  else if (kind === "events") await sendEvents(socket, id, Number(size));
  else sendChunks(socket, id, Number(size));
}

/** The echo, as long as the other subjects' answers are. */
function ofLength(body: string, size: number): string {
  return body.length >= size ? body.slice(0, size) : body + filler.slice(0, size - body.length);
}

async function sendEvents(socket: WebSocket, id: string, count: number): Promise<void> {
  for (let step = 1; step <= count; step += 1) {
    await sleep(EVENT_PAUSE_MS);
    const params = { progressToken: 1, progress: step, total: count, message: String(monotonicMs()) };
    socket.send(`${id} event\n${JSON.stringify({ jsonrpc: "2.0", method: "notifications/progress", params })}`);
  }
  socket.send(`${id} end\n{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`);
}

function sendChunks(socket: WebSocket, id: string, size: number): void {
  for (let at = 0; at < size; at += FLOOR_CHUNK_BYTES) {
    const bytes = chunk.subarray(0, Math.min(FLOOR_CHUNK_BYTES, size - at));
    const isLast = at + FLOOR_CHUNK_BYTES >= size;
    socket.send(Buffer.concat([Buffer.from(`${id} ${isLast ? "end" : "chunk"}\n`), bytes]), { binary: true });
  }
}

const filler = "x".repeat(65_536);
const chunk = Buffer.alloc(FLOOR_CHUNK_BYTES, "A");

/** Sockets that connect at the same time, and how often one tries: an agent of ours would dial again as well. */
const DIALS_AT_ONCE = 100;
const TRIES = 20;

async function connectOnce(url: string): Promise<WebSocket> {
  const socket = new WebSocket(url, { perMessageDeflate: false });
  socket.on("message", (data: Buffer) => void answer(socket, data.toString("utf8")));
  await new Promise((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", reject);
  });
  return socket;
}

async function connect(url: string): Promise<void> {
  for (let left = TRIES; ; left -= 1) {
    try {
      await connectOnce(url);
      return;
    } catch (error) {
      if (left === 1) throw error;
      await sleep(Math.random() * 1_000);
    }
  }
}

const urls = process.argv.slice(2);
await Promise.all(
  Array.from({ length: DIALS_AT_ONCE }, async (_, lane) => {
    for (let at = lane; at < urls.length; at += DIALS_AT_ONCE) await connect(urls[at] ?? "");
  }),
);
console.log("ready");
process.stdin.on("end", () => process.exit(0)).resume();
