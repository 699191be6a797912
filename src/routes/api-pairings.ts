/** `/pairings`, below `/api`, for owners: what the page `/pair` does, for the command line. The code travels in a body. */
import { Hono } from "hono";
import { z } from "zod";
import { audited } from "../auth/admin-audit.ts";
import { ownersOnly } from "../auth/owner.ts";
import { approve, deny, lookUpPairing, type Waiting } from "../auth/pairing.ts";
import { limitRequests } from "../auth/rate-limit.ts";
import type { AppEnv, Env } from "../env.ts";
import { ApiError } from "../errors.ts";
import { readBody } from "./body.ts";

const Code = z.string().max(32);
const Look = z.strictObject({ code: Code });
const Approve = z.strictObject({ code: Code, name: z.string().max(64), screen: z.string().max(8), replace: z.boolean().default(false) });

async function waitingFor(env: Env, code: string): Promise<Waiting> {
  const waiting = await lookUpPairing(env, code);
  if (waiting === null) throw new ApiError("not_found", "No device waits with this code. Codes live for ten minutes.");
  return waiting;
}

/** The pairing routes of the API. */
export function pairingRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.post("/pairings/look", ownersOnly, async (c) => {
    limitRequests(c, "codes");
    const { code } = await readBody(c, Look);
    const { facts, row } = await waitingFor(c.env, code);
    return c.json({ ...facts, expiresAt: row.expiresAt });
  });
  app.post("/pairings/approve", ownersOnly, async (c) => {
    limitRequests(c, "codes");
    const { code, ...approval } = await readBody(c, Approve);
    const waiting = await waitingFor(c.env, code);
    const approved = await audited(c, { name: "pairing.approve", target: approval.name }, () =>
      approve(c.env, waiting, approval, c.get("member").id),
    );
    return c.json({ device: approved.name, approved: true });
  });
  app.post("/pairings/deny", ownersOnly, async (c) => {
    limitRequests(c, "codes");
    const { code } = await readBody(c, Look);
    const waiting = await waitingFor(c.env, code);
    await audited(c, { name: "pairing.deny", target: waiting.facts.name }, () => deny(c.env, waiting));
    return c.json({ denied: true });
  });
  return app;
}
