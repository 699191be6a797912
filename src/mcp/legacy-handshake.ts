/** `initialize`: opens a session at the object, which keeps it through deploys and hibernation (2025-11-25, Lifecycle). */
import { RPC } from "../errors.ts";
import { SESSION } from "../limits.ts";
import { errorAnswer, resultAnswer, type Answer } from "./answer.ts";
import { carriedClientCapabilities } from "./capabilities.ts";
import type { EdgeContext } from "./context.ts";
import { initializeResult } from "./device-view.ts";
import { isObject, type JsonObject, type RpcRequest } from "./json-rpc.ts";
import { refusalAnswer } from "./refusals.ts";
import { ask } from "./tunnel-access.ts";
import { negotiate, type SessionVersion } from "./versions.ts";

interface Opening {
  version: SessionVersion;
  capabilities: JsonObject;
  clientInfo: JsonObject | undefined;
}

/** Answers `initialize`; the session id is on this response only. */
export async function initialize(message: RpcRequest, context: EdgeContext): Promise<Answer> {
  const opening = readOpening(message.params, context.switches.initializedModern === true);
  if (typeof opening === "string") return errorAnswer(200, message.idText, RPC.invalidParams, opening);
  const { version, capabilities, clientInfo } = opening;
  const refused = { era: "legacy", idText: message.idText, method: message.method } as const;
  if (!context.isBorn) {
    // No object, so no session: the client goes on without one.
    const reply = await context.access.tunnel.describe(context.grant);
    return reply.ok ? resultAnswer(message.idText, initializeResult(reply.view, version)) : refusalAnswer(context, refused, reply.refusal);
  }
  const init = { version, capabilities, ...(clientInfo === undefined ? {} : { clientInfo }) };
  const reply = await ask(context.access, (tunnel) => tunnel.openSession(context.grant, init));
  if (!reply.ok) return refusalAnswer(context, refused, reply.refusal);
  return resultAnswer(message.idText, initializeResult(reply.view, version), { "mcp-session-id": reply.sessionId });
}

function readOpening(params: unknown, allowsModern: boolean): Opening | string {
  if (!isObject(params)) return "initialize needs params.";
  const { protocolVersion, capabilities = {}, clientInfo } = params;
  if (typeof protocolVersion !== "string") return 'The param "protocolVersion" must be a string.';
  if (!isObject(capabilities)) return 'The param "capabilities" must be an object.';
  const info = isObject(clientInfo) ? clientInfo : undefined;
  if (JSON.stringify([capabilities, info]).length > SESSION.recordBytes)
    return `Capabilities and client info exceed ${SESSION.recordBytes} bytes.`;
  return { version: negotiate(protocolVersion, allowsModern), capabilities: carriedClientCapabilities(capabilities), clientInfo: info };
}
