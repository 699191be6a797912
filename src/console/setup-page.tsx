/** Set-up of each client for one device: ready to copy, and marked when the client cannot come to this address. */
import type { Context } from "hono";
import type { TokenHolder } from "../db/owner-tokens.ts";
import type { AppEnv } from "../env.ts";
import { cleanText } from "../policy/clean-text.ts";
import { clientEntries, type ClientEntry, reachOf } from "../policy/client-entries.ts";
import { page } from "./page.tsx";
import { Copyable, dayText, Heading } from "./parts.tsx";
import { devicePath } from "./paths.ts";

const PLACEHOLDER = "YOUR_TOKEN";

function Entry({ entry, isOpen }: { entry: ClientEntry; isOpen: boolean }) {
  const { title, where, text, unreachable, calls } = entry;
  return (
    <details class="entry" open={isOpen} data-client={entry.id}>
      <summary>
        {title} {unreachable === undefined ? null : <span class="badge warn">cannot reach this relay</span>}
      </summary>
      {unreachable === undefined ? null : <p class="warning">{unreachable}</p>}
      <p class="note">{where}</p>
      <Copyable label={`set-up for ${title}`} text={text} />
      {calls === "own" ? null : <p class="note">It signs in by itself and asks you for access: it needs no token.</p>}
    </details>
  );
}

/** All entries of a device. */
export function Entries({ device, mcpUrl, token = PLACEHOLDER }: { device: string; mcpUrl: string; token?: string | undefined }) {
  const entries = clientEntries({ name: device, mcpUrl, token });
  const reach = reachOf(mcpUrl);
  return (
    <section class="card" aria-labelledby="clients">
      <h2 id="clients">Connect a client</h2>
      {reach === "machine" ? (
        <p class="note">This relay's address means “this machine”: only clients that run where the relay runs can come to it.</p>
      ) : null}
      {reach === "network" ? (
        <p class="note">This relay's address is of a private network: only clients inside it can come to it.</p>
      ) : null}
      {entries.map((entry, index) => (
        <Entry entry={entry} isOpen={index === 0} />
      ))}
    </section>
  );
}

/** What was made by sharing. */
export type Shared =
  | { kind: "token"; label: string; token: string; expiresAt: number }
  | { kind: "invitation"; label: string; link: string; expiresAt: number };

/** The page that follows sharing: the secret, once, and how to use it. */
export function sharedPage(
  c: Context<AppEnv>,
  { person, device, mcpUrl, shared }: { person: TokenHolder; device: string; mcpUrl: string; shared: Shared },
): Promise<Response> {
  const label = cleanText(shared.label);
  const title = shared.kind === "token" ? `Token for ${label}` : `Invitation for ${label}`;
  return page(c, {
    title,
    console: { person, here: "devices" },
    heading: <Heading title={title} back={{ to: devicePath(device), text: device }} />,
    body:
      shared.kind === "token" ? (
        <>
          <section class="card">
            <p class="warning">The token is shown this once. It works until {dayText(shared.expiresAt)}, or until you revoke it.</p>
            <Copyable label="token" text={shared.token} />
          </section>
          <Entries device={device} mcpUrl={mcpUrl} token={shared.token} />
        </>
      ) : (
        <section class="card">
          <p class="warning">The link is shown this once, and whoever opens it first takes it. Send it over a channel you trust.</p>
          <Copyable label="invitation link" text={shared.link} />
          <p class="note">
            It can be taken until {dayText(shared.expiresAt)}. Open invitations are on the <a href="/console/people">people page</a>.
          </p>
        </section>
      ),
  });
}

/** The set-up without a token, for who has one or connects with a sign-in. */
export function setupPage(
  c: Context<AppEnv>,
  { person, device, mcpUrl }: { person: TokenHolder; device: string; mcpUrl: string },
): Promise<Response> {
  const title = `Connect a client to ${device}`;
  return page(c, {
    title,
    console: { person, here: "devices" },
    heading: <Heading title={title} back={{ to: devicePath(device), text: device }} />,
    body: (
      <>
        <p>
          Put a token in the place of <code>{PLACEHOLDER}</code>. A client that can sign in needs the address alone: it asks you for access.
          {person.role === "owner" ? (
            <>
              {" "}
              <a href={devicePath(device, "share")}>Share the device</a> to make a token.
            </>
          ) : null}
        </p>
        <Entries device={device} mcpUrl={mcpUrl} />
      </>
    ),
  });
}
