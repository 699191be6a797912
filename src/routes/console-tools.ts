/** Console: trying a tool. An owner calls through a grant that the console makes for it, a member through one of their own. */
import { type Context, Hono } from "hono";
import { z } from "zod";
import { audited } from "../auth/admin-audit.ts";
import { deviceStub } from "../auth/device-stub.ts";
import { addGrant } from "../auth/record-and-copy.ts";
import { randomId } from "../auth/secrets.ts";
import { tellObject } from "../auth/tell-object.ts";
import { CONSOLE_NOTE } from "../console/grant-rows.tsx";
import { fieldsOf, FIELD_PREFIX, readArguments, type ToolField, WHOLE_FIELD } from "../console/tool-form.ts";
import { toolPage, type ToolView } from "../console/tool-page.tsx";
import type { Tried } from "../console/tool-result.tsx";
import type { Device } from "../db/devices.ts";
import { type GrantRecord, listGrants } from "../db/grants.ts";
import type { AppEnv } from "../env.ts";
import { ApiError } from "../errors.ts";
import { API, CONSOLE } from "../limits.ts";
import { readMcpHeaders } from "../mcp/headers.ts";
import { callTool } from "../mcp/own-call.ts";
import { cleanText } from "../policy/clean-text.ts";
import { access, DEFAULT_CAPS, isUsable } from "../policy/grant.ts";
import { visibleDevice } from "./api-devices.ts";
import { readForm } from "./form.ts";
import { contextOf } from "./mcp.ts";

const Tool = z.looseObject({
  description: z.string().optional(),
  inputSchema: z.unknown(),
  annotations: z.looseObject({ destructiveHint: z.boolean().optional(), readOnlyHint: z.boolean().optional() }).optional(),
});

interface Tryable {
  device: Device;
  tool: string;
  description: string | undefined;
  destructive: boolean;
  fields: ToolField[] | null;
  /** The person's own usable grants that cover the tool. */
  grants: GrantRecord[];
}

async function usableGrants(c: Context<AppEnv>, device: Device): Promise<GrantRecord[]> {
  const records = await listGrants(c.env.DB, device.id, API.listRows, c.get("member").id);
  return records.filter(({ grant }) => isUsable(grant, Date.now()));
}

async function tryable(c: Context<AppEnv>, tool: string): Promise<Tryable> {
  const device = await visibleDevice(c, c.req.param("name") ?? "");
  const told = await tellObject(c.env, device.id, (stub) => stub.offeredTool(tool));
  const all = await usableGrants(c, device);
  const grants = all.filter(({ grant, note }) => note !== CONSOLE_NOTE && access(grant.rights, "tools", [tool]) === "allowed");
  const text = told.state === "told" ? told.value : null;
  // SECURITY: a member is told of a tool only when a grant of theirs covers it.
  if (text === null || (c.get("member").role !== "owner" && grants.length === 0))
    throw new ApiError("not_found", "The device does not offer this tool to you.");
  const parsed = Tool.safeParse(JSON.parse(text));
  const { description, inputSchema, annotations } = parsed.success ? parsed.data : {};
  return {
    device,
    tool,
    description: description === undefined ? undefined : cleanText(description, CONSOLE.descriptionChars),
    destructive: annotations?.readOnlyHint !== true && annotations?.destructiveHint === true,
    fields: fieldsOf(inputSchema),
    grants,
  };
}

function show(
  c: Context<AppEnv>,
  found: Tryable,
  state: Partial<Pick<ToolView, "whole" | "chosen" | "problem" | "tried">>,
): Promise<Response> {
  const { device, ...rest } = found;
  const begun = { whole: "{}", chosen: "", problem: undefined, tried: undefined };
  return toolPage(c, { person: c.get("member"), device: device.name, ...rest, ...begun, ...state });
}

async function tryIt(c: Context<AppEnv>): Promise<Response> {
  const form = await readForm(c, API.maxBodyBytes);
  const found = await tryable(c, form.get("tool") ?? "");
  const typed = { whole: form.get(WHOLE_FIELD) ?? "{}", chosen: form.get("grant") ?? "" };
  const fields = found.fields?.map((field) => ({ ...field, value: form.get(`${FIELD_PREFIX}${field.name}`) ?? field.value })) ?? null;
  const read = readArguments(found.fields, form);
  if (!read.ok) return show(c, { ...found, fields }, { ...typed, problem: read.problem });
  const grant = await grantFor(c, found, typed.chosen);
  return show(c, { ...found, fields }, { ...typed, tried: await call(c, found, { grant, args: read.args }) });
}

async function grantFor(c: Context<AppEnv>, { device, grants }: Tryable, chosen: string): Promise<string> {
  const picked = grants.find(({ grant }) => grant.id === chosen);
  if (picked !== undefined) return picked.grant.id;
  if (c.get("member").role !== "owner") throw new ApiError("forbidden", "Choose one of your own tokens to call with.");
  return await ownGrant(c, device);
}

/** The owner's own grant for trying, made on first use and for a day, so that the audit says who called. */
async function ownGrant(c: Context<AppEnv>, device: Device): Promise<string> {
  const { id: member } = c.get("member");
  const now = Date.now();
  const known = (await usableGrants(c, device)).find(
    ({ grant, note }) => note === CONSOLE_NOTE && grant.expiresAt - now > CONSOLE.grantLeftMs,
  );
  if (known !== undefined) return known.grant.id;
  const grant = { id: randomId(), label: "Console", member, rights: {}, caps: DEFAULT_CAPS, expiresAt: now + CONSOLE.grantMs };
  const action = { name: "token.create", target: grant.label, device, grant: grant.id };
  return (await audited(c, action, () => addGrant(c.env, device, grant, CONSOLE_NOTE))).id;
}

async function call(
  c: Context<AppEnv>,
  { device, tool }: Tryable,
  given: { grant: string; args: Record<string, unknown> },
): Promise<Tried> {
  const found = await deviceStub(c.env, device.id);
  if (found === null || !found.born) throw new ApiError("device_offline", "This device never connected.");
  const caller = { grant: given.grant, deviceId: device.id };
  const context = contextOf(c, readMcpHeaders(new Headers()), caller, { tunnel: found.stub, isBorn: true, settings: found.settings });
  const startedAt = Date.now();
  const response = await callTool({ ...context, canStream: false }, tool, given.args);
  const answer: unknown = await response.json().catch(() => undefined);
  return { answer, durationMs: Date.now() - startedAt };
}

/** The routes of trying tools. */
export function consoleToolRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.get("/devices/:name/try", async (c) => show(c, await tryable(c, c.req.query("tool") ?? ""), {}));
  app.post("/devices/:name/try", tryIt);
  return app;
}
