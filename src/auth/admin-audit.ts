/** Administrative actions as audit rows: who did what to what, and whether it reached everything. */
import type { Context } from "hono";
import { type AuditOutcome, insertAuditRows, sweepAudit } from "../db/audit.ts";
import type { AppEnv, Env } from "../env.ts";
import { ApiError } from "../errors.ts";
import { AUDIT } from "../limits.ts";
import { log } from "../log.ts";
import { randomId } from "./secrets.ts";

/** An action, named `thing.verb`; `target` is a label or id, never a secret. */
export interface Action {
  name: string;
  target?: string | undefined;
  device?: { id: string; name: string } | undefined;
  grant?: string | undefined;
}

let sweptAt = 0;

/** Records an action. Never throws: what was done is done, and a row that could not be written is in the log. */
export async function recordAction(
  env: Env,
  member: string | null,
  action: Action,
  outcome: AuditOutcome = "ok",
  reason?: string,
): Promise<void> {
  const now = Date.now();
  const row = {
    id: randomId(),
    kind: "admin" as const,
    at: now,
    member,
    method: action.name,
    target: action.target?.slice(0, AUDIT.textLength) ?? null,
    deviceId: action.device?.id ?? null,
    device: action.device?.name ?? null,
    grant: action.grant ?? null,
    outcome,
    reason: reason ?? null,
  };
  const isSweep = now - sweptAt >= AUDIT.sweepMs;
  try {
    await env.DB.batch([insertAuditRows(env.DB, [row]), ...(isSweep ? [sweepAudit(env.DB, now)] : [])]);
    if (isSweep) sweptAt = now;
  } catch (error) {
    log("error", "audit.action-not-written", { action: action.name, target: action.target, member, error });
  }
}

/** Runs an action for the signed-in person and records how it went. Errors pass on. */
export async function audited<T>(c: Context<AppEnv>, action: Action, work: () => Promise<T>): Promise<T> {
  const member = c.get("member").id;
  try {
    const result = await work();
    await recordAction(c.env, member, action);
    return result;
  } catch (error) {
    const code = error instanceof ApiError ? error.code : "internal";
    const outcome = code === "incomplete" ? "incomplete" : code === "forbidden" ? "refused" : "failed";
    await recordAction(c.env, member, action, outcome, code);
    throw error;
  }
}
