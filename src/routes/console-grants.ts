/** Console: editing, pausing and revoking grants. Owners change any; a member revokes their own. */
import { type Context, Hono } from "hono";
import { audited } from "../auth/admin-audit.ts";
import { ownersOnly } from "../auth/owner.ts";
import { revokeEverywhere } from "../auth/record-and-copy.ts";
import { confirmPage } from "../console/confirm-page.tsx";
import { grantPage } from "../console/grant-page.tsx";
import { devicePath, grantPath } from "../console/paths.ts";
import { readLife, readRate, readRights } from "../console/rights-fields.tsx";
import { sharedPage } from "../console/setup-page.tsx";
import type { GrantRecord } from "../db/grants.ts";
import type { AppEnv } from "../env.ts";
import { ApiError } from "../errors.ts";
import { API } from "../limits.ts";
import { cleanText } from "../policy/clean-text.ts";
import { publicUrl } from "./api-devices.ts";
import { changeToken, TokenChange, verbOf, visibleGrant } from "./api-tokens.ts";
import { doneAt } from "./console-done.ts";
import { parseFields } from "./console-fields.ts";
import { toolsOf } from "./console-tools-of.ts";
import { readForm } from "./form.ts";

function actionOf(record: GrantRecord, verb: string) {
  const device = { id: record.deviceId, name: record.deviceName };
  return { name: `token.${verb}`, target: record.grant.label, device, grant: record.grant.id };
}

function recordIn(c: Context<AppEnv>): Promise<GrantRecord> {
  return visibleGrant(c, c.req.param("grant") ?? "");
}

async function change(c: Context<AppEnv>, record: GrantRecord, body: TokenChange) {
  return await audited(c, actionOf(record, verbOf(body)), () => changeToken(c.env, record, body));
}

async function show(c: Context<AppEnv>, problem?: string): Promise<Response> {
  const record = await recordIn(c);
  return grantPage(c, { person: c.get("member"), record, tools: await toolsOf(c.env, record.deviceId), problem });
}

async function save(c: Context<AppEnv>): Promise<Response> {
  const form = await readForm(c, API.maxBodyBytes);
  const record = await recordIn(c);
  try {
    const note = (form.get("note") ?? "").trim();
    const body = parseFields(TokenChange, {
      for: form.get("for") ?? "",
      rights: readRights(form, record.grant.rights),
      expiresMs: readLife(form),
      callsPerMinute: readRate(form),
      note: note === "" ? null : note,
    });
    const changed = await change(c, record, body);
    if (!("token" in changed)) return doneAt(c, devicePath(record.deviceName), "saved");
    const { token, expiresAt } = changed;
    const shared = { kind: "token" as const, label: changed.for, token, expiresAt };
    return await sharedPage(c, { person: c.get("member"), device: record.deviceName, mcpUrl: publicUrl(c.env, record.deviceName), shared });
  } catch (error) {
    if (error instanceof ApiError && error.code === "bad_request") return await show(c, error.message);
    throw error;
  }
}

async function askRevoke(c: Context<AppEnv>): Promise<Response> {
  const { grant, deviceName } = await recordIn(c);
  const label = cleanText(grant.label);
  return confirmPage(c, {
    person: c.get("member"),
    here: "devices",
    title: `Revoke ${label}?`,
    text: `Its next call to ${deviceName} is refused, and what runs now ends. This cannot be undone: whoever used it needs a new token.`,
    action: grantPath(grant.id, "revoke"),
    back: { to: devicePath(deviceName), text: deviceName },
    button: `Revoke ${label}`,
    isFinal: true,
  });
}

/** The routes of grants. */
export function consoleGrantRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.get("/grants/:grant", ownersOnly, (c) => show(c));
  app.post("/grants/:grant", ownersOnly, save);
  for (const paused of [true, false]) {
    app.post(`/grants/:grant/${paused ? "pause" : "resume"}`, ownersOnly, async (c) => {
      await readForm(c);
      const record = await recordIn(c);
      await change(c, record, { paused });
      return doneAt(c, devicePath(record.deviceName), paused ? "paused" : "resumed");
    });
  }
  app.get("/grants/:grant/revoke", askRevoke);
  app.post("/grants/:grant/revoke", async (c) => {
    await readForm(c);
    const record = await recordIn(c);
    await audited(c, actionOf(record, "revoke"), () => revokeEverywhere(c.env, record.grant.id));
    return doneAt(c, devicePath(record.deviceName), "revoked");
  });
  return app;
}
