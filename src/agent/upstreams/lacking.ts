/**
 * Calls whose client cannot be asked what a legacy upstream asks of it. The upstream hears what a client would say, so
 * a tool that can do without goes on. One that then fails could not (MCP 2026-07-28, Multi round-trip requests), and a
 * modern client hears what it would have to declare.
 */
import { RPC } from "../../errors.ts";
import { UPSTREAM } from "../../limits.ts";
import { joinCapabilities, missingCapability } from "../../policy/input-capabilities.ts";
import { lastMember, parseValue, scanMembers, valueOf } from "../../tunnel/json-scan.ts";
import { failure, type AgentFailure } from "../failure.ts";
import { mayAsk, type Running } from "./in-flight.ts";
import type { RawOutcome } from "./lane.ts";
import type { InputMethod, UpstreamCall } from "./upstream.ts";

/** What the call's client does not declare and the request needs; null when it can be asked. */
export function lackedBy(call: UpstreamCall, method: InputMethod, params: Uint8Array): Record<string, unknown> | null {
  return missingCapability(call.client.capabilities, method, parseValue(params));
}

/** Remembers what was lacking. Gives the error a client answers with that does not know the request, or not its mode. */
export function noteLacking(owner: Running, method: InputMethod, lacked: Record<string, unknown>): string {
  owner.lacked = joinCapabilities(owner.lacked ?? {}, lacked);
  const code = mayAsk(owner.call, method) ? RPC.invalidParams : RPC.methodNotFound;
  return JSON.stringify({ code, message: "The client of this call cannot be asked for that" });
}

/** The failure of a modern client's call that could not go on without what was lacking; null when it did. */
export function lackingFailure({ call, lacked }: Running, outcome: RawOutcome): AgentFailure | null {
  if (lacked === undefined || call.client.era === "legacy" || outcome.kind === "failed") return null;
  const upstream = outcome.kind === "error" ? errorOf(outcome) : toolError(outcome.bytes);
  if (upstream === null) return null;
  const said = JSON.stringify(upstream).length <= UPSTREAM.errorLength ? { upstream } : {};
  const text = "The tool needs input that this client cannot be asked for.";
  return failure("upstream_failed", "unknown", text, { requiredCapabilities: lacked, ...said });
}

function errorOf({ code, message, data }: Extract<RawOutcome, { kind: "error" }>): Record<string, unknown> {
  return { code, message, ...(data === undefined ? {} : { data: parseValue(data) }) };
}

function startsObject(json: Uint8Array): boolean {
  return json.find((byte) => byte > 0x20) === 0x7b;
}

/** A tool's result that says it failed (`isError`), or null. */
function toolError(result: Uint8Array): Record<string, unknown> | null {
  // Anything but an object is no result at all, which is said where results are checked.
  if (!startsObject(result)) return null;
  const members = scanMembers(result);
  const isError = lastMember(members, "isError");
  if (isError === undefined || parseValue(valueOf(result, isError)) !== true) return null;
  const content = lastMember(members, "content");
  const isShort = content !== undefined && content.end - content.valueStart <= UPSTREAM.errorLength;
  return { isError: true, ...(isShort ? { content: parseValue(valueOf(result, content)) } : {}) };
}
