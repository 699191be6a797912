/**
 * Refresh tokens are used once (OAuth 2.1 §4.3.1), and clients refresh in parallel. The library lets the last of two
 * parallel refreshes win and the refresh token of the other is dead. Here one of them runs, and the others get the
 * refresh token it was given. A refresh token that comes back later, after its successor was used, has been copied: the
 * grant ends.
 */
import { z } from "zod";
import { answerUse, claimUse, dropUse, findUse, takeOverUse, type Use } from "../../db/oauth-uses.ts";
import { configOf, type Env } from "../../env.ts";
import { OAUTH } from "../../limits.ts";
import { seal, unseal } from "../sealing.ts";
import { hashSecret, randomId } from "../secrets.ts";
import type { Exchange, Issued } from "./exchange.ts";

const Kept = z.object({ refresh_token: z.string(), scope: z.string(), resource: z.string() });

/** `ran`: this one refreshed; `reused` says whether the token had been used before. `same`: another one did, with this. */
export type RefreshOutcome =
  | { kind: "ran"; exchange: Exchange; reused: boolean }
  | { kind: "same"; issued: Omit<Issued, "expires_in"> }
  | { kind: "busy" };

async function runClaimed(
  env: Env,
  { hash, claim, before }: { hash: string; claim: string; before: string | null },
  run: () => Promise<Exchange>,
): Promise<RefreshOutcome> {
  let isKept = false;
  try {
    const exchange = await run();
    if (exchange.ok && exchange.issued.refresh_token !== undefined) {
      const { refresh_token, scope, resource } = exchange.issued;
      // SECURITY: bound to the token that was used, so that a row moved elsewhere in the table does not open.
      const answer = await seal(configOf(env).rootKey, "refresh-answer", hash, JSON.stringify({ refresh_token, scope, resource }));
      await answerUse(env.DB, hash, claim, answer);
      isKept = true;
    }
    return { kind: "ran", exchange, reused: before !== null };
  } finally {
    // Whoever waits runs the library itself and hears what this one heard; that the token was used is not forgotten.
    if (!isKept) await (before === null ? dropUse(env.DB, hash, claim) : answerUse(env.DB, hash, claim, before));
  }
}

/** What to do about a use that somebody else has: take its answer, wait, or take it over. */
function look(use: Use, now: number): "same" | "wait" | "take" {
  if (use.answer !== null) return now - use.usedAt <= OAUTH.sameAnswerMs ? "same" : "take";
  return now - use.usedAt <= OAUTH.refreshClaimMs ? "wait" : "take";
}

/** Uses a refresh token: runs `run` unless another request just did or is at it. */
export async function refreshOnce(env: Env, token: string, run: () => Promise<Exchange>): Promise<RefreshOutcome> {
  const hash = await hashSecret(token);
  const claim = randomId();
  // Two claims may run out before ours; longer than that is a fault elsewhere.
  const until = Date.now() + 2 * OAUTH.refreshClaimMs;
  for (let now = Date.now(); now <= until; now = Date.now()) {
    if (await claimUse(env.DB, { hash, claim, at: now, expiresAt: now + OAUTH.usedMs }))
      return await runClaimed(env, { hash, claim, before: null }, run);
    const use = await findUse(env.DB, hash);
    const next = use === null ? "again" : look(use, now);
    if (use !== null && next === "same") {
      const kept = await unseal(configOf(env).rootKey, "refresh-answer", hash, use.answer ?? "");
      return { kind: "same", issued: Kept.parse(JSON.parse(kept)) };
    }
    if (use !== null && next === "take" && (await takeOverUse(env.DB, hash, use, claim, now)))
      return await runClaimed(env, { hash, claim, before: use.answer }, run);
    if (next === "wait") await new Promise((resolve) => setTimeout(resolve, OAUTH.refreshPollMs));
  }
  return { kind: "busy" };
}
