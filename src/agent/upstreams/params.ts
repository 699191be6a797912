/**
 * Builds the params an upstream gets from a call's header and payload. What is checked is what runs: the target
 * comes from the header, and a payload that contains one, or `_meta`, is refused (design section 2). Pure.
 */
import { scanMembers, ScanError, type Member } from "../../tunnel/json-scan.ts";

/** Where a method's target goes in its params. */
const TARGET_KEYS: ReadonlyMap<string, "name" | "uri" | "ref"> = new Map([
  ["tools/call", "name"],
  ["prompts/get", "name"],
  ["resources/read", "uri"],
  ["resources/subscribe", "uri"],
  ["resources/unsubscribe", "uri"],
  ["completion/complete", "ref"],
]);
const CORE_WITHOUT_TARGET = new Set(["tools/list", "prompts/list", "resources/list", "resources/templates/list"]);
const HEADER_KEYS = new Set(["name", "uri", "ref", "_meta"]);
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** The call breaks a rule; the text is for a person. */
export class ParamsError extends Error {
  override readonly name = "ParamsError";
}

export interface Target {
  method: string;
  target?: string | undefined;
  ref?: Record<string, unknown> | undefined;
}

/** Checked params without `_meta`: `head` holds the target's member, `rest` the payload's members, both as JSON text. */
export interface CheckedParams {
  head: string;
  rest: string;
  /** Decoded `arguments`, for parameter headers; absent when there are none. */
  members: readonly Member[];
  bytes: Uint8Array;
}

/** Checks a call's payload against its header. Throws ParamsError. */
export function checkParams(call: Target, payload: string): CheckedParams {
  const bytes = encoder.encode(payload === "" ? "{}" : payload);
  const members = readMembers(bytes);
  const key = TARGET_KEYS.get(call.method);
  const isCore = key !== undefined || CORE_WITHOUT_TARGET.has(call.method);
  for (const member of members) {
    if (isCore ? HEADER_KEYS.has(member.key) : member.key === "_meta") throw new ParamsError(`the payload contains ${member.key}`);
  }
  return { head: targetMember(call, key), rest: inner(bytes, members), members, bytes };
}

/** The same params for another target. */
export function retarget(params: CheckedParams, call: Target): CheckedParams {
  return { ...params, head: targetMember(call, TARGET_KEYS.get(call.method)) };
}

function readMembers(bytes: Uint8Array): Member[] {
  try {
    return scanMembers(bytes);
  } catch (error) {
    if (error instanceof ScanError) throw new ParamsError("the payload is not a JSON object");
    throw error;
  }
}

function targetMember(call: Target, key: "name" | "uri" | "ref" | undefined): string {
  if (key === "ref") {
    if (call.ref === undefined || call.target !== undefined) throw new ParamsError(`${call.method} needs a ref`);
    return `"ref":${JSON.stringify(call.ref)}`;
  }
  if (call.ref !== undefined) throw new ParamsError(`${call.method} takes no ref`);
  if (key === undefined) {
    if (call.target !== undefined) throw new ParamsError(`${call.method} takes no target`);
    return "";
  }
  if (call.target === undefined) throw new ParamsError(`${call.method} needs a target`);
  return `"${key}":${JSON.stringify(call.target)}`;
}

/** The members of an object as they were written, on one line, without its braces. */
function inner(bytes: Uint8Array, members: readonly Member[]): string {
  const first = members[0];
  const last = members[members.length - 1];
  return first && last ? oneLine(decoder.decode(bytes.subarray(first.start, last.end))) : "";
}

/** JSON text without line breaks: between tokens they are white space, and inside a string they cannot be. */
export function oneLine(json: string): string {
  return json.includes("\n") || json.includes("\r") ? json.replaceAll(/[\r\n]/g, " ") : json;
}

/** Params as JSON text: target, the payload's members, extra members, and `_meta` when it holds anything. */
export function buildParams(params: CheckedParams, meta: Record<string, unknown>, extra: readonly string[] = []): string {
  const parts = [params.head, params.rest, ...extra].filter((part) => part !== "");
  if (Object.keys(meta).length > 0) parts.push(`"_meta":${JSON.stringify(meta)}`);
  return `{${parts.join(",")}}`;
}
