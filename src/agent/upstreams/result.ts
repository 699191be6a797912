/**
 * Cuts the members that the frame header carries out of a result (design section 2, "canonical form"), and puts
 * a `structuredContent` that is not an object last, so that the edge can cut it off for a legacy caller. All other
 * bytes stay as the upstream wrote them. Pure.
 */
import { TUNNEL } from "../../limits.ts";
import { lastMember, parseValue, scanMembers, valueOf, type Member } from "../../tunnel/json-scan.ts";

/** What the header of a `result` frame says of a result. */
export interface Lifted {
  meta?: Record<string, unknown>;
  resultType?: string;
  ttlMs?: unknown;
  cacheScope?: unknown;
  structuredAt?: number;
}

export interface CanonicalResult {
  header: Lifted;
  payload: Uint8Array;
}

/** The result breaks a rule of results; the text is for a person. */
export class ResultError extends Error {
  override readonly name = "ResultError";
}

const LIFTED = new Set(["_meta", "resultType", "ttlMs", "cacheScope"]);
/** Bytes of a header that are left for `_meta`; the rest is ids and short texts. */
const META_BYTES = TUNNEL.maxHeaderBytes / 2;
const OPEN = 0x7b;

/** The canonical form of a result. Throws ScanError for what is no JSON object, and ResultError. */
export function canonicalResult(bytes: Uint8Array): CanonicalResult {
  const members = scanMembers(bytes);
  const header = readHeader(bytes, members);
  const structured = lastMember(members, "structuredContent");
  const isOdd = structured !== undefined && bytes[structured.valueStart] !== OPEN;
  if (!isOdd && !members.some((member) => LIFTED.has(member.key))) return { header, payload: bytes };
  const kept = members.filter((member) => !LIFTED.has(member.key) && (!isOdd || member.key !== "structuredContent"));
  const payload = joinMembers(bytes, isOdd ? [...kept, structured] : kept);
  // The last member and its closing brace end the payload; the comma before it belongs to it.
  if (isOdd) header.structuredAt = payload.length - 1 - (structured.end - structured.start) - (kept.length > 0 ? 1 : 0);
  return { header, payload };
}

function readHeader(bytes: Uint8Array, members: readonly Member[]): Lifted {
  const header: Lifted = {};
  const meta = lastMember(members, "_meta");
  if (meta) {
    if (bytes[meta.valueStart] !== OPEN) throw new ResultError("its _meta is not an object");
    if (meta.end - meta.valueStart > META_BYTES) throw new ResultError(`its _meta is over ${META_BYTES} bytes`);
    header.meta = parseValue(valueOf(bytes, meta)) as Record<string, unknown>;
  }
  const type = lastMember(members, "resultType");
  if (type) {
    const value = type.end - type.valueStart < 256 ? parseValue(valueOf(bytes, type)) : undefined;
    if (typeof value !== "string") throw new ResultError("its resultType is not a short string");
    header.resultType = value;
  }
  for (const key of ["ttlMs", "cacheScope"] as const) {
    const member = lastMember(members, key);
    if (member && member.end - member.valueStart < 256) header[key] = parseValue(valueOf(bytes, member));
  }
  return header;
}

/** An object made of members of another, as they were written. */
export function joinMembers(bytes: Uint8Array, members: readonly Member[]): Uint8Array {
  const size = members.reduce((sum, member) => sum + member.end - member.start, 0);
  const out = new Uint8Array(size + 2 + Math.max(0, members.length - 1));
  out[0] = OPEN;
  let at = 1;
  members.forEach((member, index) => {
    if (index > 0) {
      out[at] = 0x2c;
      at += 1;
    }
    out.set(bytes.subarray(member.start, member.end), at);
    at += member.end - member.start;
  });
  out[at] = 0x7d;
  return out;
}

/** The object without the members of these names; the same bytes when it has none of them. */
export function withoutMembers(bytes: Uint8Array, names: ReadonlySet<string>): Uint8Array {
  const members = scanMembers(bytes);
  const kept = members.filter((member) => !names.has(member.key));
  return kept.length === members.length ? bytes : joinMembers(bytes, kept);
}
