/**
 * An agent without a key asks for one (RFC 8628): it shows a code, a link and a QR code, and waits until an owner of the
 * relay approves it. The key is kept in the user's state directory, for its owner only.
 */
import { mkdir, readFile } from "node:fs/promises";
import { hostname, release, type as systemType } from "node:os";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { renderUnicodeCompact } from "uqr";
import { z } from "zod";
import { routedFetch } from "../agent/routed-fetch.ts";
import { ApiError } from "../errors.ts";
import { CLI, PAIRING } from "../limits.ts";
import { cleanText } from "../policy/clean-text.ts";
import { isNotFound, writePrivateFile } from "../serve/secret-file.ts";
import type { Terminal } from "./terminal.ts";

const Started = z.looseObject({
  deviceCode: z.string(),
  userCode: z.string(),
  screen: z.string(),
  verificationUri: z.string(),
  verificationUriComplete: z.string(),
  expiresIn: z.number().positive(),
  interval: z.number().positive(),
});
type Started = z.infer<typeof Started>;
const Paired = z.looseObject({ deviceKey: z.string(), device: z.string(), mcpUrl: z.string() });
const Refused = z.looseObject({ error: z.union([z.string(), z.looseObject({ code: z.string(), message: z.string() })]) });

/** What pairing needs to know. */
export interface PairingOptions {
  relay: URL;
  /** Where the key is kept. */
  keyPath: string;
  /** The name to ask for; made from the host's when left out. */
  name?: string | undefined;
  version: string;
  signal: AbortSignal;
}

/** The key that was paired before, if there is one. */
export async function keptKey(path: string): Promise<string | undefined> {
  return await readFile(path, "utf8").then(
    (text) => text.trim(),
    (error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw new ApiError("failed", `${path} cannot be read.`);
    },
  );
}

/** Pairs this machine and returns its device key, which is stored before. Rejects when it is refused, too late or stopped. */
export async function pair(terminal: Terminal, options: PairingOptions): Promise<string> {
  const { relay, version, signal } = options;
  const body = {
    host: hostname().slice(0, 100),
    system: `${systemType()} ${release()}`.slice(0, 100),
    agentVersion: version,
    name: nameFor(options),
  };
  const { status, json } = await post(relay, "/pair/start", body, signal);
  if (status !== 201) throw refusedStart(relay, status, json);
  const started = Started.parse(json);
  show(terminal, started);
  const { deviceKey, device } = await wait(relay, started, signal);
  await mkdir(dirname(options.keyPath), { recursive: true, mode: 0o700 });
  await writePrivateFile(options.keyPath, `${deviceKey}\n`);
  terminal.err(`Paired as ${cleanText(device)}. The key is kept in ${options.keyPath}.`);
  return deviceKey;
}

/** A device name made of the host's: lower-case letters, digits and inner hyphens. */
export function nameFor({ name }: Pick<PairingOptions, "name">, host = hostname()): string {
  if (name !== undefined) return name;
  const made = (host.split(".")[0] ?? "").toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return made.slice(0, PAIRING.nameLength).replaceAll(/^-+|-+$/g, "") || "device";
}

function show(terminal: Terminal, started: Started): void {
  const { userCode, screen, verificationUri, verificationUriComplete, expiresIn } = started;
  terminal.err("This machine is not paired yet. An owner of the relay opens this link, or scans it:");
  terminal.err(`\n  ${cleanText(verificationUriComplete)}\n`);
  // The link holds the code only: nothing in it opens anything by itself.
  terminal.err(renderUnicodeCompact(verificationUriComplete, { border: 2 }));
  terminal.err(`\n  code                 ${cleanText(userCode)}   (at ${cleanText(verificationUri)})`);
  terminal.err(`  on this screen       ${cleanText(screen)}   (to be repeated there)\n`);
  terminal.err(`Or, where the owner token is: longline device approve ${cleanText(userCode)} --screen ${cleanText(screen)}`);
  terminal.err(`Waiting for ${Math.round(expiresIn / 60)} minutes.`);
}

async function wait(relay: URL, started: Started, signal: AbortSignal): Promise<z.infer<typeof Paired>> {
  const until = Date.now() + started.expiresIn * 1000;
  let intervalMs = started.interval * 1000;
  while (Date.now() < until) {
    await sleep(intervalMs, undefined, { signal });
    // A relay that is away for a moment is asked again: the code outlives that.
    const answer = await post(relay, "/pair/claim", { deviceCode: started.deviceCode }, signal).catch((error: unknown) => {
      if (signal.aborted || !(error instanceof ApiError)) throw error;
      return undefined;
    });
    if (answer === undefined || answer.status >= 500 || answer.status === 429) continue;
    if (answer.status === 200) return Paired.parse(answer.json);
    const problem = errorOf(answer.json);
    // RFC 8628 §3.5: five seconds more.
    if (problem === "slow_down") intervalMs += 5_000;
    else if (problem !== "authorization_pending") throw endOf(problem);
  }
  throw endOf("expired_token");
}

function errorOf(json: unknown): string {
  const parsed = Refused.safeParse(json);
  if (!parsed.success) return "unknown";
  return typeof parsed.data.error === "string" ? parsed.data.error : parsed.data.error.code;
}

function endOf(problem: string): ApiError {
  if (problem === "access_denied") return new ApiError("not_authorised", "The pairing was refused.");
  if (problem === "expired_token") return new ApiError("failed", "The code has expired or was used. Start the agent again for a new one.");
  if (problem === "name_taken") return new ApiError("conflict", "Another device took the name in the meantime. Start the agent again.");
  return new ApiError("failed", "The relay gave an answer that this version does not understand. Use the same version on both sides.");
}

function refusedStart(relay: URL, status: number, json: unknown): ApiError {
  const parsed = Refused.safeParse(json);
  const message = parsed.success && typeof parsed.data.error === "object" ? cleanText(parsed.data.error.message) : undefined;
  if (status === 429) return new ApiError("too_many", message ?? "Too many devices wait to be paired. Try again in a few minutes.");
  return new ApiError("failed", message ?? `${relay.origin} cannot pair devices: it answered with HTTP ${status}.`);
}

async function post(relay: URL, path: string, body: object, signal: AbortSignal): Promise<{ status: number; json: unknown }> {
  try {
    const response = await routedFetch(new URL(path, relay), {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.any([signal, AbortSignal.timeout(CLI.requestMs)]),
    });
    const text = await response.text();
    return { status: response.status, json: parse(text) };
  } catch (error) {
    signal.throwIfAborted();
    throw new ApiError("relay_unreachable", `No relay answers at ${relay.origin}. Check --relay.`, { cause: error });
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // What is not JSON fits no shape, and is reported as such.
    return undefined;
  }
}
