/** The owner API's door: an owner token, and the role that comes with it. */
import type { MiddlewareHandler } from "hono";
import type { AppEnv } from "../env.ts";
import { findTokenHolder } from "../db/owner-tokens.ts";
import { ApiError } from "../errors.ts";
import { bearerToken } from "./bearer.ts";
import { hashSecret, isOwnerToken } from "./secrets.ts";

const NEEDS_TOKEN = "A valid owner token is needed: --owner-token or LONGLINE_OWNER_TOKEN.";

/** Lets owners through and sets `member`; 401 without a usable owner token, 403 for somebody who is not an owner. */
export const ownerOnly: MiddlewareHandler<AppEnv> = async (c, next) => {
  const token = bearerToken(c.req.raw.headers);
  if (token === undefined || !isOwnerToken(token)) throw new ApiError("not_authorised", NEEDS_TOKEN);
  // Looked up by hash: how long the look-up takes says nothing about the token.
  const holder = await findTokenHolder(c.env.DB, await hashSecret(token));
  if (holder === null) throw new ApiError("not_authorised", NEEDS_TOKEN);
  if (holder.role !== "owner") throw new ApiError("forbidden", "Only an owner of this relay may do this.");
  c.set("member", holder);
  await next();
};
