/**
 * Pairing over HTTP: `/pair/start` and `/pair/claim` for a device without a key, `/pair` for the owner who approves it in
 * a browser. A device that is not paired yet proves nothing, so both of its routes are bounded and name no object.
 */
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { z } from "zod";
import { clientAddress } from "../auth/address.ts";
import { recordAction } from "../auth/admin-audit.ts";
import { approve, claim, deny, lookUpPairing, PairingRequest, startPairing, type Waiting } from "../auth/pairing.ts";
import { countFailure, limitRequests, refuseAfterFailures } from "../auth/rate-limit.ts";
import { requireWebSession, type WebSession } from "../auth/web-session.ts";
import { approvalPage, codePage } from "../console/pair-page.tsx";
import { messagePage } from "../console/page.tsx";
import type { AppEnv } from "../env.ts";
import { ApiError } from "../errors.ts";
import { WEB } from "../limits.ts";
import { cleanText } from "../policy/clean-text.ts";
import { readBody } from "./body.ts";
import { readForm } from "./form.ts";

const Claim = z.strictObject({ deviceCode: z.string().max(64) });

const smallBody = bodyLimit({
  maxSize: WEB.maxFormBytes,
  onError: () => {
    throw new ApiError("too_large", `The body is larger than ${WEB.maxFormBytes} bytes.`);
  },
});

async function start(c: Context<AppEnv>): Promise<Response> {
  limitRequests(c, "pairings");
  const request = await readBody(c, PairingRequest);
  return c.json(await startPairing(c.env, request, clientAddress(c)), 201);
}

async function poll(c: Context<AppEnv>): Promise<Response> {
  refuseAfterFailures(c, "failures");
  limitRequests(c, "polls");
  const { deviceCode } = await readBody(c, Claim);
  const claimed = await claim(c.env, deviceCode);
  if (claimed.state === "unknown") {
    countFailure(c, "failures");
    return c.json({ error: "expired_token" }, 400);
  }
  // RFC 8628 §3.5.
  if (claimed.state !== "paired") return c.json({ error: claimed.state }, 400);
  const { deviceKey, device, mcpUrl, pairing } = claimed;
  const named = { id: pairing.deviceId ?? "", name: device };
  await recordAction(c.env, pairing.approvedBy, { name: "device.pair", target: device, device: named });
  return c.json({ deviceKey, device, mcpUrl });
}

/** The owner behind a page, or the answer to send instead. */
async function ownerOf(c: Context<AppEnv>): Promise<WebSession | Response> {
  const session = await requireWebSession(c);
  if (session instanceof Response || session.role === "owner") return session;
  return await messagePage(c, "Not for you", "Only an owner of this relay can pair a device. Ask them to approve its code.", 403);
}

async function show(c: Context<AppEnv>): Promise<Response> {
  const session = await ownerOf(c);
  if (session instanceof Response) return session;
  const code = c.req.query("code") ?? "";
  return code === "" ? codePage(c, {}) : await showCode(c, code);
}

async function showCode(c: Context<AppEnv>, code: string, problem?: string): Promise<Response> {
  limitRequests(c, "codes");
  const waiting = await lookUpPairing(c.env, code);
  if (waiting === null) return codePage(c, { problem: problem ?? "No device waits with this code. Codes live for ten minutes." });
  return approvalPage(c, { code, facts: waiting.facts, problem });
}

async function decide(c: Context<AppEnv>): Promise<Response> {
  const form = await readForm(c);
  const session = await ownerOf(c);
  if (session instanceof Response) return session;
  limitRequests(c, "codes");
  const code = form.get("code") ?? "";
  const waiting = await lookUpPairing(c.env, code);
  if (waiting === null) return codePage(c, { problem: "No device waits with this code. Codes live for ten minutes." });
  if (form.get("decision") === "deny") return await denied(c, waiting, session);
  return await approved(c, { waiting, code, session, form });
}

async function denied(c: Context<AppEnv>, waiting: Waiting, session: WebSession): Promise<Response> {
  await deny(c.env, waiting);
  await recordAction(c.env, session.memberId, { name: "pairing.deny", target: cleanText(waiting.facts.name) });
  return messagePage(c, "Refused", "The device gets no key.");
}

async function approved(
  c: Context<AppEnv>,
  { waiting, code, session, form }: { waiting: Waiting; code: string; session: WebSession; form: URLSearchParams },
): Promise<Response> {
  const approval = { name: form.get("name") ?? "", screen: form.get("screen") ?? "", replace: form.get("replace") === "yes" };
  try {
    const { name } = await approve(c.env, waiting, approval, session.memberId);
    await recordAction(c.env, session.memberId, { name: "pairing.approve", target: name });
    return messagePage(c, "Paired", `${name} gets its key within a few seconds. Its agent says so on its screen.`);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    await recordAction(c.env, session.memberId, { name: "pairing.approve", target: approval.name }, "refused", error.code);
    return showCode(c, code, error.message);
  }
}

/** The pairing routes. */
export function pairRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.post("/pair/start", smallBody, start);
  app.post("/pair/claim", smallBody, poll);
  app.get("/pair", show);
  app.post("/pair", decide);
  return app;
}
