/** `/origins`, below `/api`, for owners: where the relay answers. Other isolates follow within EDGE.registryCacheMs. */
import { type Context, Hono } from "hono";
import { z } from "zod";
import { audited } from "../auth/admin-audit.ts";
import { readOrigins } from "../auth/known-origins.ts";
import { ownersOnly } from "../auth/owner.ts";
import { addOrigin, listOrigins, removeOrigin } from "../db/origins.ts";
import { type AppEnv, configOf, Origin } from "../env.ts";
import { ApiError } from "../errors.ts";
import { API } from "../limits.ts";
import { readBody } from "./body.ts";

const Change = z.strictObject({
  origin: Origin.refine((origin) => /^https?:/.test(origin), "must begin with https:// or http://"),
  /** In front of all others: new tokens and links name it. */
  first: z.boolean().default(false),
});

async function listed(c: Context<AppEnv>) {
  await readOrigins(c.env);
  const recorded = new Set((await listOrigins(c.env.DB)).map((row) => row.origin));
  return configOf(c.env).origins.map((origin, index) => ({ origin, canonical: index === 0, configured: !recorded.has(origin) }));
}

/** The origin routes. An origin travels in a body, because it does not fit into a path. */
export function originRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.get("/origins", ownersOnly, async (c) => c.json({ origins: await listed(c) }));
  app.post("/origins", ownersOnly, async (c) => {
    const { origin, first } = await readBody(c, Change);
    if ((await listOrigins(c.env.DB)).length >= API.origins) throw new ApiError("conflict", `A relay has at most ${API.origins} origins.`);
    await audited(c, { name: "origin.add", target: origin }, () => addOrigin(c.env.DB, origin, first, Date.now()));
    return c.json({ origins: await listed(c) }, 201);
  });
  app.post("/origins/remove", ownersOnly, async (c) => {
    const { origin } = await readBody(c, Change);
    const isRemoved = await audited(c, { name: "origin.remove", target: origin }, () => removeOrigin(c.env.DB, origin));
    if (!isRemoved)
      throw new ApiError("not_found", "This origin is not on the list, or it is configured: change --origin or LONGLINE_ORIGINS then.");
    return c.json({ origins: await listed(c) });
  });
  return app;
}
