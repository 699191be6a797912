/**
 * Puts what strangers tried into the audit, as counts: at most one write of an isolate in AUDIT.strangerDelayMs, at most
 * one row for each door and reason in a window, however many knock and at however many isolates.
 */
import { waitUntil } from "cloudflare:workers";
import { sweepAudit } from "../db/audit.ts";
import { addRefusedAttempts, type RefusedAttempts, type StrangerReason } from "../db/refused-attempts.ts";
import type { Env } from "../env.ts";
import { AUDIT } from "../limits.ts";
import { log } from "../log.ts";

const counted = new Map<string, RefusedAttempts>();
const written = { isPlanned: false, at: 0, sweptAt: 0 };

/** Counts one refused attempt at a route. Returns at once and never throws; the row follows. */
export function noteRefusedAttempt(env: Env, door: string, reason: StrangerReason): void {
  const key = `${door} ${reason}`;
  const known = counted.get(key);
  if (known === undefined) counted.set(key, { door, reason, count: 1 });
  else known.count += 1;
  if (written.isPlanned) return;
  written.isPlanned = true;
  waitUntil(writeSoon(env));
}

async function writeSoon(env: Env): Promise<void> {
  const wait = written.at + AUDIT.strangerDelayMs - Date.now();
  if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
  const attempts = [...counted.values()];
  const now = Date.now();
  counted.clear();
  written.isPlanned = false;
  written.at = now;
  const isSweep = now - written.sweptAt >= AUDIT.sweepMs;
  try {
    await env.DB.batch([addRefusedAttempts(env.DB, attempts, now), ...(isSweep ? [sweepAudit(env.DB, now)] : [])]);
    if (isSweep) written.sweptAt = now;
  } catch (error) {
    log("warn", "audit.attempts-not-written", { attempts, error });
  }
}

/** Forgets when this isolate wrote last, so that the next attempt is written at once; a test starts clean with it. */
export function forgetRefusedAttempts(): void {
  counted.clear();
  Object.assign(written, { isPlanned: false, at: 0 });
}
