/** The sign-in page: what an owner or member without a session sees. */
import type { Context } from "hono";
import type { AppEnv } from "../env.ts";
import { page } from "./page.tsx";

/** What the page offers beside the owner token. */
export interface SignInOffer {
  /** A local path to go on to. */
  next: string;
  /** Shown name of the outside issuer, when one is configured. */
  issuer: string | undefined;
  /** Why the last try failed. */
  problem?: string | undefined;
}

/** Shows the sign-in page. */
export function signInPage(c: Context<AppEnv>, { next, issuer, problem }: SignInOffer): Promise<Response> {
  const query = new URLSearchParams({ next }).toString();
  return page(c, {
    title: "Sign in",
    status: problem === undefined ? 200 : 401,
    body: (
      <>
        {problem === undefined ? null : (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        {issuer === undefined ? null : (
          <p>
            <a href={`/sign-in/oidc?${query}`}>Sign in with {issuer}</a>
          </p>
        )}
        <form method="post" action="/sign-in">
          <input type="hidden" name="next" value={next} />
          <label for="token">Owner token</label>
          <input id="token" name="token" type="password" autocomplete="current-password" required />
          <button type="submit">Sign in</button>
        </form>
        <p class="note">
          <code>longline serve</code> and <code>longline deploy</code> print the owner token or a sign-in link. Were you invited? Open the
          link of your invitation, or <a href={`/join?${query}`}>enter its code</a>.
        </p>
      </>
    ),
  });
}
