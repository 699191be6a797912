/**
 * The consent page: which client asks for which tools of which device, and where its code goes. Every name on it is
 * somebody else's claim, except the addresses, which are shown first.
 */
import type { Context } from "hono";
import type { AppEnv } from "../env.ts";
import { OAUTH } from "../limits.ts";
import { isFull } from "../policy/grant.ts";
import type { Consent } from "../auth/oauth/consent.ts";
import { isTicked, type ToolOffer } from "../auth/oauth/choice.ts";
import { page } from "./page.tsx";

const REDIRECT_NOTES = {
  web: undefined,
  loopback:
    "The code goes to a program on the machine your browser runs on. Any program there could be listening, whatever the name above says.",
  app: "The code goes to the application that opens such addresses on this machine. Any installed application could have claimed them.",
} as const;

function dateOf(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 10);
}

function ClientFacts({ consent }: { consent: Consent }) {
  const { client, redirect } = consent.asked;
  const note = REDIRECT_NOTES[redirect.kind];
  return (
    <>
      <dl>
        <dt>Client</dt>
        <dd>
          <strong id="client">{client.name}</strong>
          {client.domain === undefined ? " (it says so itself)" : ` (published by ${client.domain})`}
        </dd>
        <dt>Sends you to</dt>
        <dd>
          <strong id="redirect">{redirect.shown}</strong>
        </dd>
        <dt>Device</dt>
        <dd>
          <strong id="device">{consent.device.name}</strong>
        </dd>
        <dt>You are</dt>
        <dd>{consent.session.name}</dd>
      </dl>
      {note === undefined ? null : (
        <p class="problem" role="note">
          {note} Go on only if you started this yourself just now.
        </p>
      )}
    </>
  );
}

function hintOf(offer: ToolOffer): string {
  const hints = [
    offer.asked && !offer.current ? "asked for" : "",
    offer.current ? "allowed now" : "",
    offer.readOnly ? "says that it only reads" : "",
    offer.destructive ? "says that it can destroy" : "",
    offer.unknown ? "the device does not list it" : "",
  ];
  return hints.filter((hint) => hint !== "").join(", ");
}

function Tool({ offer, ticked }: { offer: ToolOffer; ticked: boolean }) {
  const hint = hintOf(offer);
  return (
    <li>
      <label class="box">
        <input type="checkbox" name="tool" value={offer.name} checked={ticked} />
        <code>{offer.name}</code>
        {hint === "" ? "" : ` — ${hint}`}
      </label>
      {offer.description === undefined && offer.title === undefined ? null : <p class="note">{offer.description ?? offer.title}</p>}
    </li>
  );
}

function Extra({ consent, kind, label }: { consent: Consent; kind: "resources" | "prompts"; label: string }) {
  const { ceiling, existing } = consent;
  if (!isFull(ceiling.rights) && ceiling.rights[kind] === undefined) return null;
  return (
    <label class="box">
      <input type="checkbox" name={kind} value="yes" checked={existing?.grant.rights[kind] !== undefined} />
      {label}
    </label>
  );
}

function Rights({ consent }: { consent: Consent }) {
  const { offers, existing, isKnown, isSpecific } = consent;
  const hasAll = existing !== null && isFull(existing.grant.rights);
  const state = { isSpecific, hasGrant: existing !== null };
  return (
    <fieldset>
      <legend>What it may use</legend>
      <label class="box">
        <input type="radio" name="scope" value="ticked" checked={!hasAll} /> Only what is ticked here
      </label>
      <ul class="rows">
        {offers.map((offer) => (
          <Tool offer={offer} ticked={isTicked(offer, state)} />
        ))}
      </ul>
      {isKnown ? null : <p class="note">The device has not said yet which tools it has.</p>}
      <Extra consent={consent} kind="resources" label="Read its resources" />
      <Extra consent={consent} kind="prompts" label="Use its prompts" />
      <label class="box">
        <input type="radio" name="scope" value="all" checked={hasAll} /> Everything you may use on it yourself, also what is added later
      </label>
    </fieldset>
  );
}

function Life({ consent }: { consent: Consent }) {
  const longest = consent.ceiling.lifeMs / 86_400_000;
  const days = OAUTH.lifeDays.filter((count) => count <= longest);
  return (
    <>
      <label for="days">Until when</label>
      <select id="days" name="days">
        {(days.length === 0 ? [longest] : days).map((count) => (
          <option value={String(count)}>{count === 1 ? "1 day from now" : `${count} days from now`}</option>
        ))}
      </select>
    </>
  );
}

/** Shows the consent page. `action` is where the form is posted, `sealed` what binds it to this session and request. */
export function consentPage(c: Context<AppEnv>, consent: Consent, form: { action: string; sealed: string }): Promise<Response> {
  const { existing } = consent;
  return page(c, {
    title: `Allow access to ${consent.device.name}?`,
    formTargets: [consent.asked.redirect.formTarget],
    body: (
      <>
        <ClientFacts consent={consent} />
        {existing === null ? null : (
          <p>
            This client has access already, until {dateOf(existing.grant.expiresAt)}. What you allow here takes the place of it, for all
            installations of the client that you use.
          </p>
        )}
        <form method="post" action={form.action}>
          <input type="hidden" name="consent" value={form.sealed} />
          <Rights consent={consent} />
          <Life consent={consent} />
          <p class="note">You can take the access back at any time, on your account page or with the `longline` command.</p>
          <button type="submit" name="decision" value="allow">
            Allow
          </button>
          <button type="submit" name="decision" value="deny" class="quiet">
            Decline
          </button>
        </form>
      </>
    ),
  });
}

/** Says what is wrong with an authorization request. `back` is offered as a link: nobody is sent on unasked. */
export function authorizationProblemPage(
  c: Context<AppEnv>,
  problem: { message: string; back?: { to: string; shown: string } | undefined },
): Promise<Response> {
  const { message, back } = problem;
  return page(c, {
    title: "This cannot be authorized",
    status: 400,
    body: (
      <>
        <p class="problem" role="alert">
          {message}
        </p>
        {back === undefined ? null : (
          <p>
            <a id="back" href={back.to} rel="noreferrer">
              Tell the client, at {back.shown}
            </a>
          </p>
        )}
        <p class="note">If you did not start this yourself, close this page.</p>
      </>
    ),
  });
}
