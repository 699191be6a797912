/** `/keys`, below `/api`, for owners: the keys that sign access tokens. Rotation needs no deploy. */
import { Hono } from "hono";
import { z } from "zod";
import { audited } from "../auth/admin-audit.ts";
import { ownersOnly } from "../auth/owner.ts";
import { rotateSigningKey } from "../auth/signing-keys.ts";
import { lastExpiry } from "../db/grants.ts";
import { listVerifyingKeys } from "../db/signing-keys.ts";
import type { AppEnv } from "../env.ts";
import { API } from "../limits.ts";
import { readBody } from "./body.ts";

const Rotation = z.strictObject({
  /**
   * ms that older keys go on verifying. Left out: until the last token that is valid now has expired. 0 ends every token
   * there is, within EDGE.registryCacheMs.
   */
  overlapMs: z.int().nonnegative().max(API.maxExpiresMs).optional(),
});

/** The signing key routes. */
export function keyRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.get("/keys", ownersOnly, async (c) => {
    const keys = await listVerifyingKeys(c.env.DB, Date.now());
    return c.json({
      keys: keys.map(({ kid, createdAt, rotatedAt, retiredAt }) => ({
        kid,
        createdAt,
        signs: rotatedAt === null,
        verifiesUntil: retiredAt,
      })),
    });
  });
  app.post("/keys/rotate", ownersOnly, async (c) => {
    const { overlapMs } = await readBody(c, Rotation);
    const now = Date.now();
    const overlap = overlapMs ?? Math.max(0, (await lastExpiry(c.env.DB, now)) - now);
    const { kid } = await audited(c, { name: "keys.rotate", target: overlapMs === 0 ? "at once" : undefined }, () =>
      rotateSigningKey(c.env, overlap),
    );
    return c.json({ kid, olderVerifyUntil: now + overlap });
  });
  return app;
}
