/** The people of the relay and the invitations that are open. */
import type { Context } from "hono";
import type { Invitation } from "../db/invitations.ts";
import type { ListedMember } from "../db/members.ts";
import type { TokenHolder } from "../db/owner-tokens.ts";
import type { AppEnv } from "../env.ts";
import { GRANT } from "../limits.ts";
import { cleanText } from "../policy/clean-text.ts";
import { page } from "./page.tsx";
import { Copyable, dayText, Done, Heading, Problem } from "./parts.tsx";
import { describeRights } from "./rights-text.ts";

/** What the page shows. */
export interface PeopleView {
  person: TokenHolder;
  members: readonly ListedMember[];
  invitations: readonly { invitation: Invitation; state: string }[];
  problem: string | undefined;
  done: string | undefined;
}

function MemberRow({ member, isSelf }: { member: ListedMember; isSelf: boolean }) {
  const name = cleanText(member.name);
  return (
    <li class="split">
      <div>
        <h3>
          {name} {isSelf ? <span class="muted">(you)</span> : null}
        </h3>
        <p class="note">
          {member.grants === 1 ? "1 grant" : `${member.grants} grants`},{" "}
          {member.sessions === 1 ? "1 browser" : `${member.sessions} browsers`} signed in, since {dayText(member.createdAt)}
        </p>
      </div>
      <div class="actions">
        <span class={`badge plain ${member.role === "owner" ? "new" : ""}`}>{member.role}</span>
        {isSelf ? null : (
          <a
            class="button quiet danger small"
            href={`/console/people/${encodeURIComponent(member.id)}/remove`}
            aria-label={`Remove ${name}`}
          >
            Remove
          </a>
        )}
      </div>
    </li>
  );
}

function InvitationRow({ invitation, state }: { invitation: Invitation; state: string }) {
  const label = cleanText(invitation.label);
  const what =
    invitation.role === "owner"
      ? "to be an owner"
      : invitation.device === null
        ? "to be a member"
        : `to ${cleanText(invitation.device.name)}: ${describeRights(invitation.rights ?? {})}`;
  const taken = invitation.takenName === null ? "" : ` by ${cleanText(invitation.takenName)}`;
  return (
    <li class="split">
      <div>
        <h3>{label}</h3>
        <p class="note">
          {what}; {state === "open" ? `open until ${dayText(invitation.expiresAt)}` : `${state}${taken}`}
        </p>
      </div>
      <div class="actions">
        <span class={`badge ${state === "open" ? "ok" : ""}`}>{state}</span>
        {state === "revoked" || state === "expired" ? null : (
          <a
            class="button quiet danger small"
            href={`/console/invitations/${encodeURIComponent(invitation.id)}/revoke`}
            aria-label={`Revoke the invitation of ${label}`}
          >
            Revoke
          </a>
        )}
      </div>
    </li>
  );
}

function Invite() {
  return (
    <section class="card" aria-labelledby="invite">
      <h2 id="invite">Invite somebody</h2>
      <form method="post" action="/console/invitations">
        <label for="for">Who is it for</label>
        <input id="for" name="for" maxlength={GRANT.labelLength} autocomplete="off" placeholder="Grace" required />
        <label for="role">As</label>
        <select id="role" name="role">
          <option value="member">a member, who sees what is shared with them</option>
          <option value="owner">an owner, who administers everything here</option>
        </select>
        <label for="days">The link works for</label>
        <select id="days" name="days">
          <option value="7">7 days</option>
          <option value="1">1 day</option>
          <option value="30">30 days</option>
        </select>
        <button type="submit">Make the link</button>
      </form>
      <p class="note">To invite somebody to one device, share it from its own page.</p>
    </section>
  );
}

/** Shows the people. */
export function peoplePage(c: Context<AppEnv>, { person, members, invitations, problem, done }: PeopleView): Promise<Response> {
  return page(c, {
    title: "People",
    status: problem === undefined ? 200 : 400,
    console: { person, here: "people" },
    heading: <Heading title="People" />,
    body: (
      <>
        <Done text={done} />
        <Problem text={problem} />
        <div class="pair">
          <section class="card" aria-labelledby="members">
            <h2 id="members">Members ({members.length})</h2>
            <ul class="rows">
              {members.map((member) => (
                <MemberRow member={member} isSelf={member.id === person.id} />
              ))}
            </ul>
          </section>
          <div>
            <Invite />
            <section class="card" aria-labelledby="invitations">
              <h2 id="invitations">Invitations</h2>
              {invitations.length === 0 ? <p class="note">None yet.</p> : null}
              <ul class="rows">
                {invitations.map((row) => (
                  <InvitationRow {...row} />
                ))}
              </ul>
            </section>
          </div>
        </div>
      </>
    ),
  });
}

/** Shows an invitation's link, once. */
export function invitedPage(
  c: Context<AppEnv>,
  { person, label, link, expiresAt }: { person: TokenHolder; label: string; link: string; expiresAt: number },
): Promise<Response> {
  const title = `Invitation for ${cleanText(label)}`;
  return page(c, {
    title,
    console: { person, here: "people" },
    heading: <Heading title={title} back={{ to: "/console/people", text: "People" }} />,
    body: (
      <section class="card">
        <p class="warning">The link is shown this once, and whoever opens it first takes it. Send it over a channel you trust.</p>
        <Copyable label="invitation link" text={link} />
        <p class="note">It can be taken until {dayText(expiresAt)}.</p>
      </section>
    ),
  });
}
