/** MCP clients of both eras that call `count` again and again, each call with a key of its own, and note what they were told. */
import { setTimeout as sleep } from "node:timers/promises";
import { modernRequest } from "../support/clients.ts";
import type { Fate, Ledger } from "./ledger.ts";
import type { Random } from "./random.ts";

export interface CallerOptions {
  name: string;
  era: "modern" | "legacy";
  mcpUrl: string;
  token: string;
  random: Random;
  ledger: Ledger;
  /** Resolves when a client can connect. */
  up(): Promise<void>;
  /** No new call is made once it is aborted. */
  until: AbortSignal;
}

interface Work {
  key: string;
  ms: number;
  steps: number;
  bytes: number;
  /** Characters of the request beside its key. */
  pad: number;
  leaveAfterMs: number | undefined;
}

/** ms in which every call has to be answered: the window for a lost link, and what a frozen one and a slow one take. */
const ANSWER_MS = 150_000;
const LEGACY = "2025-11-25";

/** Calls until it is told to stop; resolves when its last call is over. */
export async function runCaller(options: CallerOptions): Promise<void> {
  const client = options.era === "modern" ? new ModernClient(options) : new LegacyClient(options);
  for (let count = 1; !options.until.aborted; count += 1) {
    await options.up();
    const work = draw(options.random, `${options.name}-${count}`);
    const startedAt = Date.now();
    const fate = await fateOf(client, work);
    options.ledger.add({ key: work.key, caller: options.name, ms: Date.now() - startedAt, fate });
    await sleep(fate.kind === "answered" ? options.random.int(0, 60) : options.random.int(50, 400));
  }
}

function draw(random: Random, key: string): Work {
  const kind = random.pick(["quick", "quick", "quick", "slow", "progress", "big", "huge", "upload", "leaver"]);
  const work: Work = { key, ms: 0, steps: 0, bytes: 0, pad: 0, leaveAfterMs: undefined };
  if (kind === "slow") work.ms = random.int(200, 6_000);
  if (kind === "progress") Object.assign(work, { ms: random.int(200, 3_000), steps: random.int(1, 20) });
  if (kind === "big") work.bytes = random.int(50_000, 600_000);
  if (kind === "huge") work.bytes = random.int(1_000_000, 6_000_000);
  if (kind === "upload") work.pad = random.int(100_000, 2_000_000);
  if (kind === "leaver") Object.assign(work, { ms: random.int(100, 3_000), leaveAfterMs: random.int(0, 2_500) });
  return work;
}

interface Client {
  /** The JSON-RPC messages that answer a call. */
  call(work: Work, signal: AbortSignal): Promise<Record<string, unknown>[] | Fate>;
}

async function fateOf(client: Client, work: Work): Promise<Fate> {
  const leave = work.leaveAfterMs === undefined ? undefined : AbortSignal.timeout(work.leaveAfterMs);
  const late = AbortSignal.timeout(ANSWER_MS);
  try {
    const messages = await client.call(work, leave === undefined ? late : AbortSignal.any([leave, late]));
    return Array.isArray(messages) ? judge(work, messages) : messages;
  } catch (error) {
    if (leave?.aborted === true) return { kind: "gone", why: "left" };
    if (late.aborted) return { kind: "wrong", what: `no answer within ${ANSWER_MS} ms` };
    if (isConnectionLoss(error)) return { kind: "gone", why: "died" };
    return { kind: "wrong", what: `the client failed: ${String(error)}` };
  }
}

/** The relay's process ended, which is the one loss that nobody promises to survive; `isExpected` decides later. */
function isConnectionLoss(error: unknown): boolean {
  return error instanceof TypeError && (error.message === "fetch failed" || error.message === "terminated");
}

function judge(work: Work, messages: Record<string, unknown>[]): Fate {
  const outcomes = messages.filter((message) => message["method"] === undefined);
  const [outcome] = outcomes;
  if (outcome === undefined || outcomes.length > 1) return { kind: "wrong", what: `${outcomes.length} answers` };
  if (outcome["id"] !== work.key) return { kind: "wrong", what: `the answer's id is ${JSON.stringify(outcome["id"])}` };
  for (const message of messages) {
    const { message: text } = (message["params"] ?? {}) as { message?: unknown };
    if (message["method"] === "notifications/progress" && text !== work.key) return { kind: "wrong", what: `progress of ${String(text)}` };
  }
  const error = outcome["error"] as { message: string; data?: { reason?: string; outcome?: string } } | undefined;
  if (error !== undefined) return failed(error);
  const text = (outcome["result"] as { content?: { text?: string }[] }).content?.[0]?.text ?? "";
  const wanted = work.bytes + 2 * (work.key.length + 1);
  if (!text.startsWith(`${work.key}:`) || !text.endsWith(`:${work.key}`))
    return { kind: "wrong", what: `an answer of ${text.slice(0, 40)}` };
  if (text.length !== wanted) return { kind: "wrong", what: `${text.length} characters instead of ${wanted}` };
  return { kind: "answered" };
}

function failed(error: { message: string; data?: { reason?: string; outcome?: string } }): Fate {
  const { reason = "none", outcome } = error.data ?? {};
  if (outcome !== "not_started" && outcome !== "unknown") return { kind: "wrong", what: `an error without an outcome: ${error.message}` };
  return { kind: "failed", reason, outcome };
}

/** The messages of a response. A body that the relay broke off says so by its last event, after a line that is not JSON. */
async function messagesOf(response: Response): Promise<Record<string, unknown>[]> {
  const text = await response.text();
  if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) return [JSON.parse(text) as Record<string, unknown>];
  return text.split("\n").flatMap((line) => {
    if (!line.startsWith("data:")) return [];
    try {
      return [JSON.parse(line.slice(5)) as Record<string, unknown>];
    } catch {
      return [];
    }
  });
}

function argumentsOf({ key, ms, steps, bytes, pad }: Work): Record<string, unknown> {
  return { name: "count", arguments: { key, ms, steps, bytes, pad: "é".repeat(pad / 2) } };
}

class ModernClient implements Client {
  readonly #options: CallerOptions;

  constructor(options: CallerOptions) {
    this.#options = options;
  }

  async call(work: Work, signal: AbortSignal): Promise<Record<string, unknown>[] | Fate> {
    const { mcpUrl, token } = this.#options;
    const meta = work.steps > 0 ? { progressToken: 0 } : {};
    const response = await fetch(mcpUrl, { ...modernRequest(token, "tools/call", argumentsOf(work), { id: work.key, meta }), signal });
    if (response.status !== 200) return { kind: "wrong", what: `HTTP ${response.status}: ${(await response.text()).slice(0, 200)}` };
    return messagesOf(response);
  }
}

class LegacyClient implements Client {
  readonly #options: CallerOptions;
  #session: string | undefined;

  constructor(options: CallerOptions) {
    this.#options = options;
  }

  async call(work: Work, signal: AbortSignal): Promise<Record<string, unknown>[] | Fate> {
    if (this.#session === undefined) {
      const refused = await this.#open(signal);
      if (refused !== undefined) return refused;
    }
    const params = { ...argumentsOf(work), ...(work.steps > 0 ? { _meta: { progressToken: 0 } } : {}) };
    const response = await this.#post({ jsonrpc: "2.0", id: work.key, method: "tools/call", params }, signal);
    if (response.status !== 200) return { kind: "wrong", what: `HTTP ${response.status}: ${(await response.text()).slice(0, 200)}` };
    return messagesOf(response);
  }

  /** The handshake. A failure of ours is the call's fate: nothing was started. */
  async #open(signal: AbortSignal): Promise<Fate | undefined> {
    const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: "chaos", version: "1" } };
    const response = await this.#post({ jsonrpc: "2.0", id: 0, method: "initialize", params }, signal);
    const [answer] = await messagesOf(response);
    if (answer?.["error"] !== undefined) return failed(answer["error"] as Parameters<typeof failed>[0]);
    this.#session = response.headers.get("mcp-session-id") ?? undefined;
    const initialized = await this.#post({ jsonrpc: "2.0", method: "notifications/initialized" }, signal);
    await initialized.body?.cancel();
    return undefined;
  }

  #post(message: object, signal: AbortSignal): Promise<Response> {
    const { mcpUrl, token } = this.#options;
    return fetch(mcpUrl, {
      method: "POST",
      signal,
      headers: {
        authorization: `Bearer ${token}`,
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": LEGACY,
        ...(this.#session === undefined ? {} : { "mcp-session-id": this.#session }),
      },
      body: JSON.stringify(message),
    });
  }
}
