/** What the consent page shows about a request, worked out for one signed-in person. */
import type { OfferedTool } from "../../../durable/rpc.ts";
import { findFormerName } from "../../db/device-names.ts";
import { type Device, findDevice, findDeviceByName } from "../../db/devices.ts";
import { findGrant, type GrantRecord } from "../../db/grants.ts";
import { type DeclinedKey, listDeclined } from "../../db/oauth-declined.ts";
import { findClientGrant } from "../../db/oauth-grants.ts";
import { configOf, type Env } from "../../env.ts";
import { OAUTH } from "../../limits.ts";
import { access, isFull } from "../../policy/grant.ts";
import { seal, unseal } from "../sealing.ts";
import { tellObject } from "../tell-object.ts";
import type { WebSession } from "../web-session.ts";
import type { Asked } from "./authorization-request.ts";
import { type Ceiling, ceilingOf } from "./ceiling.ts";
import { offersFor, type ToolOffer, toolScope } from "./choice.ts";

/** Everything a decision needs. */
export interface Consent {
  asked: Asked;
  session: WebSession;
  device: Device;
  ceiling: Ceiling;
  /** The grant the client has; approving changes it. */
  existing: GrantRecord | null;
  offers: ToolOffer[];
  /** False when the device has not said what it offers. */
  isKnown: boolean;
  /** The request names tools, so it is about these. */
  isSpecific: boolean;
  /** Exclusions of the client's grant that are not the person's own doing: what they cover is not theirs to give. */
  kept: readonly string[];
  /** Scopes that were declined and not allowed since, and until when each is not asked for again (epoch ms). */
  declined: ReadonlyMap<string, number>;
}

/** Whose answers about a client and a device are remembered. */
export function declinedKey({ asked, session, device }: Pick<Consent, "asked" | "session" | "device">): DeclinedKey {
  return { memberId: session.memberId, clientId: asked.client.id, deviceId: device.id };
}

/** The device of a name, which may be the one it had before a rename. */
async function deviceCalled(env: Env, name: string): Promise<Device | null> {
  const device = await findDeviceByName(env.DB, name);
  if (device !== null) return device;
  const former = await findFormerName(env.DB, name, Date.now());
  return former === null ? null : await findDevice(env.DB, former.deviceId);
}

async function catalogueOf(env: Env, device: Device): Promise<OfferedTool[] | null> {
  const told = await tellObject(env, device.id, (stub) => stub.offeredTools());
  return told.state === "told" ? told.value : null;
}

function keptExclusions(existing: GrantRecord | null, declined: ReadonlyMap<string, number>): string[] {
  const exclusions = (existing?.grant.rights.tools ?? []).filter((pattern) => pattern.startsWith("!"));
  return exclusions.filter((pattern) => !declined.has(toolScope(pattern.slice(1))));
}

/** What to decide, or null when the device does not exist or is none of the person's: the two look alike. */
export async function consentFor(env: Env, asked: Asked, session: WebSession): Promise<Consent | null> {
  const device = await deviceCalled(env, asked.resource.name);
  const ceiling = device === null ? null : await ceilingOf(env, session, device.id);
  if (device === null || ceiling === null) return null;
  const key = { memberId: session.memberId, deviceId: device.id, clientId: asked.client.id, redirect: asked.redirect.key };
  const id = await findClientGrant(env.DB, key, Date.now());
  const existing = id === null ? null : await findGrant(env.DB, id);
  const catalogue = await catalogueOf(env, device);
  const scopes = asked.request.scope.slice(0, OAUTH.scopes);
  const declined = await listDeclined(env.DB, declinedKey({ asked, session, device }));
  const kept = keptExclusions(existing, declined);
  const offers = offersFor(catalogue ?? [], ceiling.rights, existing?.grant.rights, scopes).filter(
    (offer) => access({ tools: ["*", ...kept] }, "tools", [offer.name]) === "allowed",
  );
  return {
    asked,
    session,
    device,
    ceiling,
    existing,
    offers,
    isKnown: catalogue !== null,
    isSpecific: offers.some((offer) => offer.asked),
    kept,
    declined,
  };
}

/**
 * Whether the request is a step-up for nothing but what the person declined a moment ago: it is answered as declined
 * without asking again, so that a client that insists does not bother anybody. A first authorization is always asked.
 */
export function isDeclinedAlready({ existing, offers, declined }: Consent, now: number): boolean {
  if (existing === null || isFull(existing.grant.rights)) return false;
  const wanted = offers.filter((offer) => offer.asked && !offer.current);
  return wanted.length > 0 && wanted.every((offer) => (declined.get(toolScope(offer.name)) ?? 0) > now);
}

/** What the form carries: the request it was made for, bound to the session that saw it. */
export async function sealConsent(env: Env, session: WebSession, query: string, now: number): Promise<string> {
  const text = JSON.stringify({ query, until: now + OAUTH.consentMs });
  return seal(configOf(env).rootKey, "consent", session.sessionId, text);
}

/** The query of the request that a form was made for; undefined when it is not this session's, or too old. */
export async function unsealConsent(env: Env, session: WebSession, sealed: string, now: number): Promise<string | undefined> {
  try {
    const text = await unseal(configOf(env).rootKey, "consent", session.sessionId, sealed);
    const { query, until } = JSON.parse(text) as { query: string; until: number };
    return until > now ? query : undefined;
  } catch {
    return undefined; // Not sealed here, or for another session.
  }
}
