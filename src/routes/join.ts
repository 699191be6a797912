/**
 * `/join`: where set-up links and invitations lead. GET shows a form and changes nothing; the first POST says what the
 * code gives and changes nothing either; only the button of that page uses it.
 */
import { type Context, Hono } from "hono";
import { recordAction } from "../auth/admin-audit.ts";
import { lookUpCode, type Opened } from "../auth/codes.ts";
import { localPath } from "../auth/local-path.ts";
import { countFailure, refuseAfterFailures } from "../auth/rate-limit.ts";
import { randomId } from "../auth/secrets.ts";
import { HOME_PATH, openWebSession, webSession } from "../auth/web-session.ts";
import { codePage, confirmPage } from "../console/join-page.tsx";
import { takeInvitation } from "../db/invitations.ts";
import { useSetupCode } from "../db/setup-codes.ts";
import type { AppEnv } from "../env.ts";
import { ApiError } from "../errors.ts";
import { WEB } from "../limits.ts";
import { cleanText } from "../policy/clean-text.ts";
import { readForm } from "./form.ts";

const NO_CODE = "This code does not open anything: it was used, revoked, or it expired. Ask for a new link.";

async function open(c: Context<AppEnv>, code: string): Promise<Opened | null> {
  refuseAfterFailures(c, "failures");
  const opened = await lookUpCode(c.env, code);
  if (opened === null) countFailure(c, "failures");
  return opened;
}

async function show(c: Context<AppEnv>): Promise<Response> {
  const form = await readForm(c);
  const next = localPath(form.get("next") ?? undefined, HOME_PATH);
  const code = (form.get("code") ?? "").trim().replace(/^.*#/, "");
  const opened = await open(c, code);
  if (opened === null) return codePage(c, { next, problem: NO_CODE });
  return confirmPage(c, { opened, code, next, signedInAs: (await webSession(c))?.name });
}

async function accept(c: Context<AppEnv>): Promise<Response> {
  const form = await readForm(c);
  const next = localPath(form.get("next") ?? undefined, HOME_PATH);
  const opened = await open(c, form.get("code") ?? "");
  const isDone = opened !== null && (opened.kind === "setup" ? await signIn(c, opened) : await take(c, opened, form.get("name") ?? ""));
  return isDone ? c.redirect(next, 303) : codePage(c, { next, problem: NO_CODE });
}

async function signIn(c: Context<AppEnv>, { hash, memberId }: Extract<Opened, { kind: "setup" }>): Promise<boolean> {
  if (!(await useSetupCode(c.env.DB, hash, Date.now()))) return false;
  await openWebSession(c, memberId, "setup");
  return true;
}

async function take(c: Context<AppEnv>, { invitation }: Extract<Opened, { kind: "invitation" }>, name: string): Promise<boolean> {
  const session = await webSession(c);
  const member = session === null ? { id: randomId(), name: nameOf(name) } : { id: session.memberId, name: session.name };
  // A member who is invited as an owner takes it in a browser of its own, so that nobody becomes owner by the way.
  if (session !== null && invitation.role === "owner" && session.role !== "owner")
    throw new ApiError("conflict", "Sign out first: an invitation to be an owner makes a new person.");
  const at = Date.now();
  const isTaken = await takeInvitation(c.env.DB, {
    id: invitation.id,
    member: { ...member, role: invitation.role },
    isNew: session === null,
    at,
  });
  if (!isTaken) return false;
  await recordAction(c.env, member.id, { name: "invitation.take", target: invitation.label, device: invitation.device ?? undefined });
  if (session === null) await openWebSession(c, member.id, "invitation");
  return true;
}

function nameOf(text: string): string {
  const name = cleanText(text, WEB.nameLength).trim();
  if (name === "") throw new ApiError("bad_request", "Say your name, so that others know whom they share with. Go back and fill it in.");
  return name;
}

/** The join routes. */
export function joinRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.get("/join", (c) => codePage(c, { next: localPath(c.req.query("next"), HOME_PATH) }));
  app.post("/join", show);
  app.post("/join/accept", accept);
  return app;
}
