/**
 * The reference stdio server as a program: `node dynosai.ts DATABASE WITNESS`. It speaks both eras and is pinned to
 * the one of its first message. Every line it is given is appended to WITNESS with the process id.
 */
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { DynosaiProject, GateError, question, toolResult } from "./dynosai-project.ts";
import { isObject, META, MODERN, objectAt, readObject, type Json } from "./json.ts";

const VERSIONS = [MODERN, "2025-11-25", "2025-06-18"];
const INFO = { name: "dynosai-flow", version: "1.0.0rc9" };
const CAPABILITIES = { tools: { listChanged: true } };
const INSTRUCTIONS = "Provider-neutral guidance.";
const GATE = "dynosai-gate-";

const [databaseFile = "", witness = ""] = process.argv.slice(2);
const project = new DynosaiProject(databaseFile);

let era: "modern" | "legacy" | undefined;
/** What the handshake said of the client. */
let shaken: Json = {};
let isReady = false;
const asked = new Map<unknown, (answer: unknown) => void>();
/** One request at a time; a gate that waits for a person lets the others through. */
let turn: Promise<void> = Promise.resolve();

class RpcError extends Error {
  readonly code: number;
  readonly data: Json | undefined;
  constructor(code: number, message: string, data?: Json) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

function send(message: Json): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

function take(line: string): void {
  appendFileSync(witness, `${JSON.stringify({ pid: process.pid, line: readObject(line) ?? line })}\n`);
  const message = readObject(line);
  // A line that is no message is a traceback, and no reply.
  if (message === undefined) return void process.stderr.write("Traceback (most recent call last):\njson.decoder.JSONDecodeError\n");
  if (message["method"] === undefined) return asked.get(message["id"])?.(message["result"]);
  if (message["method"] === "notifications/initialized") isReady = true;
  // notifications/cancelled is accepted and ignored.
  if (message["id"] === undefined) return undefined;
  turn = turn.then(
    () =>
      new Promise((next) => {
        void answer(message, next).then(next);
      }),
  );
}

/** Answers a request; `next` lets the one behind it begin. */
async function answer(message: Json, next: () => void): Promise<void> {
  const { id } = message;
  try {
    send({ id, result: await dispatch(message, next) });
  } catch (error) {
    if (error instanceof GateError) send({ id, error: { code: -32602, message: "Invalid params", data: error.data } });
    else if (error instanceof RpcError) {
      send({ id, error: { code: error.code, message: error.message, ...(error.data === undefined ? {} : { data: error.data }) } });
    } else throw error;
  }
}

async function dispatch(message: Json, next: () => void): Promise<Json> {
  const { method } = message;
  const params = objectAt(message, "params");
  // Opaque `_meta` without a version is a vendor's own and says nothing about the era.
  const isModernForm = objectAt(params, "_meta")[META.protocolVersion] !== undefined;
  era ??= isModernForm || method === "server/discover" ? "modern" : method === "initialize" ? "legacy" : undefined;
  if (era === undefined) throw new RpcError(-32002, "Server not initialized");
  if (era === "legacy") return await legacy(method, params, next);
  return await modern(method, message["params"]);
}

async function modern(method: unknown, given: unknown): Promise<Json> {
  if (method === "initialize" || method === "ping") throw new RpcError(-32601, `Method not found: ${method}`);
  const params = metadataChecked(given);
  const meta = objectAt(params, "_meta");
  const complete = (value: Json): Json => ({
    resultType: "complete",
    ...value,
    _meta: { [META.protocolVersion]: MODERN, [META.serverInfo]: INFO },
  });
  if (method === "server/discover") {
    const cache = { ttlMs: 3_600_000, cacheScope: "public" };
    return complete({ supportedVersions: VERSIONS, capabilities: CAPABILITIES, instructions: INSTRUCTIONS, ...cache });
  }
  if (method === "tools/list") return complete({ ...list(), ttlMs: 0, cacheScope: "private" });
  if (method !== "tools/call") throw new RpcError(-32601, `Method not found: ${String(method)}`);
  const args = objectAt(params, "arguments");
  const client = objectAt(meta, "io.modelcontextprotocol/clientInfo")["name"];
  if (params["name"] !== "dynosai_get_next_action" || args["work_id"] === undefined) return complete(await call(params, client));
  if (params["inputResponses"] !== undefined) answerGates(params["inputResponses"], args["work_id"]);
  else if (!project.approved(args["work_id"]) && isObject(objectAt(meta, META.clientCapabilities)["elicitation"])) {
    return { resultType: "input_required", inputRequests: { [`${GATE}${project.gate(args["work_id"])}`]: question() } };
  }
  return complete(nextAction(args["work_id"], client));
}

/** `requestState` is ignored: the database is the authority. */
function answerGates(responses: unknown, work: unknown): void {
  if (!isObject(responses)) throw new GateError({ reason: "input_responses_must_be_object" });
  for (const [key, response] of Object.entries(responses)) {
    if (!key.startsWith(GATE)) throw new GateError({ reason: "invalid_input_request_key", key });
    project.answer(key.slice(GATE.length), work, response);
  }
}

function metadataChecked(params: unknown): Json {
  const fail = (reason: string, more: Json = {}): never => {
    throw new RpcError(-32602, "Invalid params", { reason, ...more });
  };
  if (!isObject(params)) return fail("params_must_be_object");
  if (!isObject(params["_meta"])) return fail("missing_meta", { required: [META.protocolVersion, META.clientCapabilities] });
  const version = params["_meta"][META.protocolVersion];
  if (version === undefined) return fail("missing_protocol_version");
  if (version !== MODERN) {
    throw new RpcError(-32022, "Unsupported protocol version", { supported: VERSIONS, requested: version });
  }
  if (!isObject(params["_meta"][META.clientCapabilities])) return fail("missing_client_capabilities");
  return params;
}

async function legacy(method: unknown, params: Json, next: () => void): Promise<Json> {
  if (method === "initialize") return shakeHands(params);
  if (method === "ping") return {};
  if (!isReady) throw new RpcError(-32002, "Server not initialized");
  if (method === "tools/list") return list();
  if (method !== "tools/call") throw new RpcError(-32601, `Method not found: ${String(method)}`);
  const args = objectAt(params, "arguments");
  const client = objectAt(shaken, "clientInfo")["name"];
  const work = args["work_id"];
  if (params["name"] !== "dynosai_get_next_action" || work === undefined) return await call(params, client);
  if (!project.approved(work) && isObject(objectAt(shaken, "capabilities")["elicitation"])) {
    const gate = project.gate(work);
    const reply = elicit(gate);
    next();
    project.answer(gate, work, await reply);
  }
  return nextAction(work, client);
}

/** An unknown version is an error here, not negotiated; the stateless one has no handshake. */
function shakeHands(params: Json): Json {
  const version = params["protocolVersion"];
  if (version === MODERN) throw new RpcError(-32601, "Method not found: initialize");
  if (typeof version !== "string" || !VERSIONS.includes(version)) {
    throw new RpcError(-32022, "Unsupported protocol version", { supported: VERSIONS, requested: version });
  }
  shaken = params;
  return { protocolVersion: version, capabilities: CAPABILITIES, serverInfo: INFO, instructions: INSTRUCTIONS };
}

/** Asks the client and waits without a time limit. */
function elicit(gate: string): Promise<unknown> {
  const id = `dynosai-elicitation-${gate.replace("INT-", "")}`;
  return new Promise((resolve) => {
    asked.set(id, (answer) => {
      asked.delete(id);
      resolve(answer);
    });
    send({ id, ...question() });
  });
}

async function call(params: Json, client: unknown): Promise<Json> {
  const name = String(params["name"]);
  if (!project.knows(name)) return toolResult({ isError: true, error_type: "unknown_tool", message: `unknown tool: ${name}` }, client);
  const before = project.phase;
  const value = await project.run(name, objectAt(params, "arguments"));
  if (project.phase !== before) send({ method: "notifications/tools/list_changed" });
  return toolResult(value, client);
}

/** The outcome of a gate, or that it is still open: nothing approves itself. */
function nextAction(work: unknown, client: unknown): Json {
  if (project.approved(work)) return toolResult({ accepted: true, work_id: work, next_action: "implement" }, client);
  return toolResult(
    { accepted: true, work_id: work, human_interaction: { interaction_id: project.gate(work), status: "pending" } },
    client,
  );
}

function list(): Json {
  const tools = project.tools();
  return { tools, dynosaiToolSurface: { activity: project.phase, count: tools.length, mode: "adaptive" } };
}

createInterface({ input: process.stdin })
  .on("line", take)
  .on("close", () => {
    if (asked.size === 0) return;
    process.stderr.write("EOFError: input ended while a person was asked\n");
    process.exitCode = 1;
  });
