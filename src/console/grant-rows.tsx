/** The grants of a device, with what can be done about each. */
import type { GrantRecord } from "../db/grants.ts";
import { cleanText } from "../policy/clean-text.ts";
import { isFull } from "../policy/grant.ts";
import { Act, dayText } from "./parts.tsx";
import { devicePath, grantPath } from "./paths.ts";
import { describeRights } from "./rights-text.ts";

/** By this note the console finds the grant that it made for an owner who tries tools. */
export const CONSOLE_NOTE = "Made by the console, to try tools.";

/** How a grant is at `now` (epoch ms), for a person. */
function stateOf({ grant }: GrantRecord, now: number): { text: string; tone: string } {
  if (grant.revokedAt !== null) return { text: "Revoked", tone: "" };
  if (grant.expiresAt <= now) return { text: "Expired", tone: "" };
  return grant.pausedAt === null ? { text: "Active", tone: "ok" } : { text: "Paused", tone: "warn" };
}

/** A grant that the console made for itself goes once it is expired: nobody has a token of it that a longer life would renew. */
function isOver({ grant, note }: GrantRecord): boolean {
  return grant.revokedAt !== null || (note === CONSOLE_NOTE && grant.expiresAt <= Date.now());
}

function Row({ record, isOwner }: { record: GrantRecord; isOwner: boolean }) {
  const { grant, clientName, memberName, note } = record;
  const state = stateOf(record, Date.now());
  const label = cleanText(grant.label);
  return (
    <li>
      <div class="split">
        <h3>{label}</h3>
        <span class={`badge ${state.tone}`}>{state.text}</span>
      </div>
      <p class="note">
        {isFull(grant.rights) ? "Everything, also what is added later" : describeRights(grant.rights)}
        <br />
        {clientName === null ? "Token" : `Connected client ${cleanText(clientName)}`} of {cleanText(memberName ?? "somebody removed")},
        until {dayText(grant.expiresAt)}
        {note === null ? "" : ` · ${cleanText(note)}`}
      </p>
      <div class="actions">
        {isOwner ? (
          <>
            <a class="button quiet small" href={grantPath(grant.id)} aria-label={`Edit ${label}`}>
              Edit
            </a>
            {grant.pausedAt === null ? (
              <Act action={grantPath(grant.id, "pause")} text="Pause" label={`Pause ${label}`} />
            ) : (
              <Act action={grantPath(grant.id, "resume")} text="Resume" label={`Resume ${label}`} />
            )}
          </>
        ) : null}
        <a
          class="button quiet small"
          href={`/console/audit?${new URLSearchParams({ grant: grant.id }).toString()}`}
          aria-label={`Activity of ${label}`}
        >
          Activity
        </a>
        <a class="button quiet danger small" href={grantPath(grant.id, "revoke")} aria-label={`Revoke ${label}`}>
          Revoke
        </a>
      </div>
    </li>
  );
}

/** The card of grants: those that count first, those that are over behind a disclosure. */
export function GrantRows({ device, grants, isOwner }: { device: string; grants: readonly GrantRecord[]; isOwner: boolean }) {
  const over = grants.filter((record) => record.grant.revokedAt !== null);
  const current = grants.filter((record) => !isOver(record));
  return (
    <section class="card" aria-labelledby="grants">
      <header>
        <h2 id="grants">{isOwner ? "Who may use it" : "Your access"}</h2>
        {isOwner ? <a href={devicePath(device, "share")}>Share</a> : null}
      </header>
      {current.length === 0 ? (
        <p class="note">{isOwner ? "Nobody yet. Share it to make a token or an invitation." : "No token or client yet."}</p>
      ) : null}
      <ul class="rows">
        {current.map((record) => (
          <Row record={record} isOwner={isOwner} />
        ))}
      </ul>
      {over.length === 0 ? null : (
        <details>
          <summary>Revoked ({over.length})</summary>
          <ul class="rows">
            {over.map(({ grant }) => (
              <li class="note">
                {cleanText(grant.label)}, revoked {dayText(grant.revokedAt ?? 0)}
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}
