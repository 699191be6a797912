/** Pages of a set-up link or invitation: the one that takes the code, and the one that says what it gives. */
import type { Context } from "hono";
import type { Opened } from "../auth/codes.ts";
import type { AppEnv } from "../env.ts";
import { WEB } from "../limits.ts";
import { cleanText } from "../policy/clean-text.ts";
import { page } from "./page.tsx";
import { describeRights } from "./rights-text.ts";

/** Moves the code from the fragment, which the server never sees, into the form, and takes it out of the address bar. */
const MOVE_CODE = `
const code = location.hash.slice(1);
if (code !== "") {
  history.replaceState(null, "", location.pathname + location.search);
  document.getElementById("code").value = code;
  document.getElementById("join").submit();
}`;

/** The page a link opens. Without scripts the code is pasted. */
export function codePage(c: Context<AppEnv>, { next, problem }: { next: string; problem?: string }): Promise<Response> {
  return page(c, {
    title: "Open your link",
    status: problem === undefined ? 200 : 401,
    ...(problem === undefined ? { script: MOVE_CODE } : {}),
    body: (
      <>
        {problem === undefined ? null : (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <form method="post" action="/join" id="join">
          <input type="hidden" name="next" value={next} />
          <label for="code">Code</label>
          <input id="code" name="code" autocomplete="off" spellcheck={false} required />
          <button type="submit">Continue</button>
        </form>
        <p class="note">The code is the part of your link behind the #. It works once.</p>
      </>
    ),
  });
}

/** What a code gives, with the button that uses it. `signedInAs` is who would take it. */
export function confirmPage(
  c: Context<AppEnv>,
  { opened, code, next, signedInAs }: { opened: Opened; code: string; next: string; signedInAs: string | undefined },
): Promise<Response> {
  return page(c, {
    title: opened.kind === "setup" ? "Sign in" : "You are invited",
    body: (
      <>
        {opened.kind === "setup" ? <p>This signs this browser in as {cleanText(opened.name)}.</p> : <Offer opened={opened} />}
        <form method="post" action="/join/accept">
          <input type="hidden" name="next" value={next} />
          <input type="hidden" name="code" value={code} />
          {opened.kind === "invitation" && signedInAs === undefined ? (
            <>
              <label for="name">Your name</label>
              <input id="name" name="name" maxlength={WEB.nameLength} autocomplete="name" required />
            </>
          ) : null}
          {opened.kind === "invitation" && signedInAs !== undefined ? <p>You take it as {cleanText(signedInAs)}.</p> : null}
          <button type="submit">{opened.kind === "setup" ? "Sign in" : "Accept"}</button>
        </form>
      </>
    ),
  });
}

function Offer({ opened: { invitation } }: { opened: Extract<Opened, { kind: "invitation" }> }) {
  const { device, rights, role } = invitation;
  if (role === "owner") return <p>To administer this relay as an owner, with everything on it.</p>;
  if (device === null || rights === null) return <p>To be a member of this relay.</p>;
  return (
    <dl>
      <dt>Device</dt>
      <dd>{cleanText(device.name)}</dd>
      <dt>You may use</dt>
      <dd>{describeRights(rights)}</dd>
    </dl>
  );
}
