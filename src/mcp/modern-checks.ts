/**
 * What a modern request must be before it is forwarded, in the order that gives every probe its own code (MCP
 * 2026-07-28, Streamable HTTP and Overview). Pure.
 */
import { RPC } from "../errors.ts";
import { errorAnswer, type Answer } from "./answer.ts";
import { checkMethodHeader, type McpHeaders } from "./headers.ts";
import { isObject, type JsonObject, type RpcRequest } from "./json-rpc.ts";
import { levelRank, LOG_LEVELS, META, metaOf } from "./meta.ts";
import { isModernVersion, SUPPORTED_VERSIONS } from "./versions.ts";

/** What a modern request declares about its client. */
export interface ModernFacts {
  protocol: string;
  capabilities: JsonObject;
  info: JsonObject | undefined;
  logLevel: string | undefined;
}
export type ModernCheck = { ok: true; facts: ModernFacts } | { ok: false; answer: Answer };

/** -32022 with what is supported (MCP 2026-07-28, Versioning). */
export function unsupportedVersionAnswer(idText: string | undefined, requested: string): Answer {
  return errorAnswer(400, idText, RPC.unsupportedVersion, "This protocol version is not offered here.", {
    supported: SUPPORTED_VERSIONS,
    requested,
  });
}

/** Version header, `_meta`, versions equal, version supported, capabilities, `Mcp-Method`. */
export function checkModern(message: RpcRequest, headers: McpHeaders): ModernCheck {
  const refuse = (code: number, text: string): ModernCheck => ({ ok: false, answer: errorAnswer(400, message.idText, code, text) });
  const { version } = headers;
  if (version === undefined) return refuse(RPC.headerMismatch, "The header MCP-Protocol-Version is missing.");
  const meta = metaOf(message.params);
  const declared = meta?.[META.version];
  if (typeof declared !== "string") {
    if (!SUPPORTED_VERSIONS.includes(version)) return { ok: false, answer: unsupportedVersionAnswer(message.idText, version) };
    return refuse(RPC.invalidParams, `params._meta needs "${META.version}" and "${META.capabilities}".`);
  }
  if (declared !== version) return refuse(RPC.headerMismatch, "The header MCP-Protocol-Version is not the version in _meta.");
  if (!isModernVersion(version)) return { ok: false, answer: unsupportedVersionAnswer(message.idText, version) };
  const capabilities = meta?.[META.capabilities];
  if (!isObject(capabilities)) return refuse(RPC.invalidParams, `params._meta needs "${META.capabilities}", an object.`);
  const problem = checkMethodHeader(headers, message.method);
  if (problem !== null) return refuse(problem.code, problem.message);
  const info = meta?.[META.clientInfo];
  const logLevel = meta?.[META.logLevel];
  return {
    ok: true,
    facts: {
      protocol: version,
      capabilities,
      info: isObject(info) ? info : undefined,
      logLevel: typeof logLevel === "string" ? logLevel : undefined,
    },
  };
}

/** An unknown log level is refused rather than read as none. */
export function checkLogLevel(message: RpcRequest): Answer | null {
  const level = metaOf(message.params)?.[META.logLevel];
  if (level === undefined || levelRank(level) >= 0) return null;
  return errorAnswer(200, message.idText, RPC.invalidParams, `The log level must be one of ${LOG_LEVELS.join(", ")}.`);
}
