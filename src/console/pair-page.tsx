/** Pages of pairing: where a code is typed, and where a device is looked at before it gets a key. */
import type { Context } from "hono";
import type { PairingFacts } from "../auth/pairing-object.ts";
import type { AppEnv } from "../env.ts";
import { PAIRING } from "../limits.ts";
import { cleanText } from "../policy/clean-text.ts";
import { page } from "./page.tsx";

/** Asks for the code on the agent's screen. */
export function codePage(c: Context<AppEnv>, { problem }: { problem?: string | undefined }): Promise<Response> {
  return page(c, {
    title: "Pair a device",
    status: problem === undefined ? 200 : 404,
    body: (
      <>
        <Problem text={problem} />
        <form method="get" action="/pair">
          <label for="code">Code on the device's screen</label>
          <input id="code" name="code" autocomplete="off" autocapitalize="characters" spellcheck={false} required />
          <button type="submit">Continue</button>
        </form>
        <p class="note">
          Start <code>longline agent</code> on the device; it shows a code.
        </p>
      </>
    ),
  });
}

/** Shows what a device says of itself, and asks whether it may have a key. Nothing is changed by looking. */
export function approvalPage(
  c: Context<AppEnv>,
  { code, facts, problem }: { code: string; facts: PairingFacts; problem: string | undefined },
): Promise<Response> {
  return page(c, {
    title: "Pair this device?",
    status: problem === undefined ? 200 : 409,
    body: (
      <>
        <Problem text={problem} />
        <dl>
          <dt>Host</dt>
          <dd>{cleanText(facts.host)}</dd>
          <dt>System</dt>
          <dd>{cleanText(facts.system)}</dd>
          <dt>Address</dt>
          <dd>{facts.address ?? "not known"}</dd>
          <dt>Agent</dt>
          <dd>{cleanText(facts.agentVersion)}</dd>
        </dl>
        <p class="note">The device says this of itself. Approve only what you have just started yourself.</p>
        <form method="post" action="/pair">
          <input type="hidden" name="code" value={code} />
          <label for="name">Name of the device</label>
          <input id="name" name="name" value={cleanText(facts.name)} maxlength={PAIRING.nameLength} required />
          <label for="screen">The two characters on its screen</label>
          <input id="screen" name="screen" maxlength={PAIRING.screenLength} autocomplete="off" autocapitalize="characters" required />
          <label class="box">
            <input type="checkbox" name="replace" value="yes" />
            The device exists already; this replaces its key
          </label>
          <button type="submit" name="decision" value="approve">
            Pair
          </button>
          <button class="quiet" type="submit" name="decision" value="deny" formnovalidate>
            Refuse
          </button>
        </form>
      </>
    ),
  });
}

function Problem({ text }: { text: string | undefined }) {
  return text === undefined ? null : (
    <p class="problem" role="alert">
      {text}
    </p>
  );
}
