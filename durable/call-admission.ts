/** Whether a request may be forwarded at all: grant, rights, session, parameter headers, caps. No I/O, no storage write. */
import type { Failure } from "../src/errors.ts";
import { QUEUE } from "../src/limits.ts";
import { decide } from "../src/policy/decide.ts";
import { type Grant, isUsable, scopesFor } from "../src/policy/grant.ts";
import { checkParamHeaders } from "../src/policy/param-headers.ts";
import { type Payload, payloadText } from "../src/tunnel/codec.ts";
import type { ClientFacts } from "../src/tunnel/frames.ts";
import type { Desk } from "./desk.ts";
import { refusedByDrain } from "./drain.ts";
import { isPaused, PAUSED } from "./device-changes.ts";
import type { LegacySession, SessionResult } from "./legacy-sessions.ts";
import type { Received } from "./request-body.ts";
import type { Refusal, SessionFacts, SessionUse } from "./rpc.ts";

export type Admission =
  | { ok: true; client: ClientFacts; session: LegacySession | undefined }
  | { ok: false; refusal: Refusal; session: LegacySession | undefined };

/** A usable grant, or undefined. One that is unknown may be on its way from D1 since the agent came online. */
export async function findGrant(desk: Desk, id: string): Promise<Grant | undefined> {
  if (desk.grants.get(id) === undefined) await desk.presence.settled();
  const grant = desk.grants.get(id);
  return grant !== undefined && isUsable(grant, desk.now()) ? grant : undefined;
}

/** Checks a request, in the order in which a caller should hear of what is wrong. */
export function admit(desk: Desk, grant: Grant, request: Received): Admission {
  if (isPaused(desk)) return { ok: false, refusal: { kind: "failure", failure: PAUSED }, session: undefined };
  const now = desk.now();
  const used = request.session === undefined ? undefined : desk.sessions.use(grant.id, request.session, now);
  if (used?.ok === false) return { ok: false, refusal: sessionRefusal(used), session: undefined };
  const session = used?.session;
  const client = session === undefined ? request.client : clientOf(session);
  if (client === undefined) return { ok: false, refusal: { kind: "params", message: "The client did not say who it is." }, session };
  const refusal =
    checkAccess(desk, grant, request) ?? checkHeaders(desk, client, request) ?? refusedByDrain(desk) ?? checkCaps(desk, grant, now);
  return refusal === null ? { ok: true, client, session } : { ok: false, refusal, session };
}

function checkAccess(desk: Desk, grant: Grant, request: Received): Refusal | null {
  const decision = decide(grant.rights, request, desk.catalogue.prefixes);
  if (decision === "allowed") return null;
  if (decision === "beyond") return { kind: "scope", scopes: scopesFor(request.method, request.target) };
  return { kind: decision };
}

/** MCP 2026-07-28, Tools, `x-mcp-header`: the payload is read only for a tool whose schema asks for it. */
function checkHeaders(desk: Desk, client: ClientFacts, request: Received): Refusal | null {
  // Without the member nothing may be demanded of this client; an empty one says that it sent no such header.
  const { paramHeaders } = request;
  if (client.era !== "modern" || request.method !== "tools/call" || request.target === undefined || paramHeaders === undefined) return null;
  const rules = desk.catalogue.paramRules(request.target);
  if (rules.length === 0) return null;
  const problem = checkParamHeaders(rules, argumentsOf(request.payload), paramHeaders);
  return problem === null ? null : { kind: "header", message: problem };
}

function argumentsOf(payload: Payload): unknown {
  if (payload.length === 0) return undefined;
  const params: unknown = JSON.parse(payloadText(payload));
  return typeof params === "object" && params !== null ? (params as Record<string, unknown>)["arguments"] : undefined;
}

function checkCaps(desk: Desk, grant: Grant, now: number): Refusal | null {
  if (desk.pending.ofGrant(grant.id) >= grant.caps.inFlight) return rateLimited(QUEUE.retryAfterMs);
  if (grant.caps.callsPerMinute === null) return null;
  const { callsPerMinute } = grant.caps;
  const retryAfterMs = desk.rates.take(grant.id, callsPerMinute, now);
  if (retryAfterMs === 0) return null;
  const wait = Math.ceil(retryAfterMs / 1000);
  return rateLimited(retryAfterMs, `Calls per minute of this grant are limited to ${callsPerMinute}. Wait ${wait} s and call again.`);
}

/** Too many, at once unless the message says otherwise; nothing was started. */
export function rateLimited(retryAfterMs: number, message?: string): Refusal {
  const failure: Failure = { reason: "rate_limited", outcome: "not_started", data: { retryAfterMs } };
  return { kind: "failure", failure: message === undefined ? failure : { ...failure, message } };
}

/** What a session problem means for the request. */
export function sessionRefusal(result: Exclude<SessionResult, { ok: true }>): Refusal {
  return result.why === "busy" ? rateLimited(QUEUE.retryAfterMs) : { kind: "session", why: result.why };
}

/** Checks a session for a message that is not forwarded. */
export function checkSession(
  desk: Desk,
  grant: string,
  use: SessionUse,
): { ok: true; session: LegacySession } | { ok: false; refusal: Refusal } {
  const result = desk.sessions.use(grant, use, desk.now());
  return result.ok ? result : { ok: false, refusal: sessionRefusal(result) };
}

/** What the edge needs of a session. */
export function sessionFacts(session: LegacySession): SessionFacts {
  return { version: session.version, capabilities: session.capabilities };
}

function clientOf(session: LegacySession): ClientFacts {
  return {
    era: "legacy",
    protocol: session.version,
    capabilities: session.capabilities,
    ...(session.clientInfo === undefined ? {} : { info: session.clientInfo }),
  };
}
