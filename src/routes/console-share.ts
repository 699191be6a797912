/** Console: sharing a device, which ends in a token or an invitation, and the set-up of clients. */
import { type Context, Hono } from "hono";
import { audited } from "../auth/admin-audit.ts";
import { ownersOnly } from "../auth/owner.ts";
import { readLife, readRate, readRights } from "../console/rights-fields.tsx";
import { setupPage, type Shared, sharedPage } from "../console/setup-page.tsx";
import { sharePage } from "../console/share-page.tsx";
import type { Device } from "../db/devices.ts";
import { listMembers } from "../db/members.ts";
import type { AppEnv } from "../env.ts";
import { ApiError } from "../errors.ts";
import { API } from "../limits.ts";
import type { Rights } from "../policy/grant.ts";
import { deviceNamed, publicUrl, visibleDevice } from "./api-devices.ts";
import { invite, NewInvitation } from "./api-people.ts";
import { createToken, holderOf, newGrant, NewToken } from "./api-tokens.ts";
import { parseFields } from "./console-fields.ts";
import { lookAtTools, toolsOf } from "./console-tools-of.ts";
import { readForm } from "./form.ts";

/** Nothing ticked: what is shared is picked, not left over. */
const NOTHING: Rights = { tools: [] };

async function ask(c: Context<AppEnv>, typed: { label: string; rights: Rights; problem: string | undefined }): Promise<Response> {
  const device = await deviceNamed(c.env, c.req.param("name") ?? "");
  const [tools, members] = await Promise.all([toolsOf(c.env, device.id), listMembers(c.env.DB, Date.now(), API.listRows)]);
  return sharePage(c, { person: c.get("member"), device: device.name, tools, members, ...typed });
}

async function share(c: Context<AppEnv>): Promise<Response> {
  const form = await readForm(c, API.maxBodyBytes);
  const device = await deviceNamed(c.env, c.req.param("name") ?? "");
  try {
    const rights = readRights(form);
    const shared =
      form.get("way") === "invitation" ? await makeInvitation(c, device, form, rights) : await makeToken(c, device, form, rights);
    // Whoever gives everything away has the list in front of them: from here on what is new stands out.
    await lookAtTools(c.env, device.id, c.get("member").id);
    return await sharedPage(c, { person: c.get("member"), device: device.name, mcpUrl: publicUrl(c.env, device.name), shared });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "bad_request") throw error;
    const rights = form.get("scope") === "all" ? {} : { tools: form.getAll("tool") };
    return await ask(c, { label: form.get("for") ?? "", rights, problem: error.message });
  }
}

async function makeToken(c: Context<AppEnv>, device: Device, form: URLSearchParams, rights: Rights): Promise<Shared> {
  const body = parseFields(NewToken, {
    for: form.get("for") ?? "",
    ...rights,
    expiresMs: readLife(form),
    callsPerMinute: readRate(form),
    member: form.get("member") ?? undefined,
  });
  const grant = newGrant(body, await holderOf(c, body));
  const action = { name: "token.create", target: body.for, device, grant: grant.id };
  const { token, expiresAt } = await audited(c, action, () => createToken(c.env, device, body, grant));
  return { kind: "token", label: body.for, token, expiresAt };
}

async function makeInvitation(c: Context<AppEnv>, device: Device, form: URLSearchParams, rights: Rights): Promise<Shared> {
  const body = parseFields(NewInvitation, { for: form.get("for") ?? "", device: device.name, ...rights, grantMs: readLife(form) });
  const made = await audited(c, { name: "invitation.create", target: body.for, device }, () => invite(c.env, body, c.get("member").id));
  return { kind: "invitation", label: body.for, link: made.link, expiresAt: made.expiresAt };
}

/** The routes of sharing. */
export function consoleShareRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.get("/devices/:name/share", ownersOnly, (c) => ask(c, { label: "", rights: NOTHING, problem: undefined }));
  app.post("/devices/:name/share", ownersOnly, share);
  app.get("/devices/:name/setup", async (c) => {
    const device = await visibleDevice(c, c.req.param("name"));
    return setupPage(c, { person: c.get("member"), device: device.name, mcpUrl: publicUrl(c.env, device.name) });
  });
  return app;
}
