/** A person's own page: who they are here, the devices they were given, and their grants, each with a button to revoke it. */
import type { Context } from "hono";
import type { WebSession } from "../auth/web-session.ts";
import type { GrantRecord } from "../db/grants.ts";
import type { Invitation } from "../db/invitations.ts";
import type { AppEnv } from "../env.ts";
import { cleanText } from "../policy/clean-text.ts";
import { page } from "./page.tsx";
import { describeRights } from "./rights-text.ts";

/** What the page shows. */
export interface Account {
  session: WebSession;
  grants: readonly GrantRecord[];
  invitations: readonly Invitation[];
  /** MCP URL of a device name. */
  urlOf: (name: string) => string;
}

/** Shows a person's own page. */
export function accountPage(c: Context<AppEnv>, { session, grants, invitations, urlOf }: Account): Promise<Response> {
  const given = invitations.flatMap(({ device, rights }) => (device === null || rights === null ? [] : [{ device, rights }]));
  return page(c, {
    title: "Your account",
    console: { person: { id: session.memberId, name: session.name, role: session.role }, here: "account" },
    body: (
      <>
        <p>
          You are signed in as {cleanText(session.name)} ({session.role}).
        </p>
        <form method="post" action="/sign-out">
          <button class="quiet" type="submit">
            Sign out
          </button>
        </form>
        <h2>Devices you were given</h2>
        {given.length === 0 ? <p class="note">None by invitation.</p> : null}
        <ul class="rows">
          {given.map(({ device, rights }) => (
            <li>
              <strong>{cleanText(device.name)}</strong>: {describeRights(rights)}
              <br />
              <code>{urlOf(device.name)}</code>
            </li>
          ))}
        </ul>
        <h2>Your grants</h2>
        {grants.length === 0 ? <p class="note">None. A client that you connect to a device appears here.</p> : null}
        <ul class="rows">
          {grants.map(({ grant, deviceName }) => (
            <li>
              <strong>{cleanText(grant.label)}</strong> on {cleanText(deviceName)}: {describeRights(grant.rights)}; until{" "}
              {new Date(grant.expiresAt).toISOString().slice(0, 10)}
              <form method="post" action="/account/revoke">
                <input type="hidden" name="grant" value={grant.id} />
                <button class="quiet" type="submit" aria-label={`Revoke ${cleanText(grant.label)} on ${cleanText(deviceName)}`}>
                  Revoke
                </button>
              </form>
            </li>
          ))}
        </ul>
      </>
    ),
  });
}
