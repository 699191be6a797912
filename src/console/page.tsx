/**
 * The one frame of every page: plain HTML that reads without scripts, in light and dark, on a phone. Nothing comes from
 * another origin; the one style and the one script carry a nonce (CSP 3 §2.3.1), so injected markup does nothing.
 */
import type { Context } from "hono";
import { raw } from "hono/html";
import type { Child } from "hono/jsx";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { TokenHolder } from "../db/owner-tokens.ts";
import type { AppEnv } from "../env.ts";
import { randomId } from "../auth/secrets.ts";
import { cleanText } from "../policy/clean-text.ts";
import { COMMON } from "./scripts.ts";
import { STYLE } from "./style.ts";

/** One page. */
export interface Page {
  title: string;
  body: Child;
  status?: ContentfulStatusCode;
  /** Scripts of ours, without `</`; never made from a request. */
  script?: string;
  /**
   * Origins or schemes a form of this page may end at beside this relay, redirects included (`https://app.example`,
   * `vscode:`): only for a page that exists to send the person there.
   */
  formTargets?: readonly string[];
  /** Who is signed in, and which part of the console this is: gives the page its navigation and its width. */
  console?: { person: TokenHolder; here: Section } | undefined;
  /** What stands in the place of the plain heading. */
  heading?: Child;
}

/** A part of the console. */
export type Section = "devices" | "audit" | "people" | "account";

const SECTIONS: readonly { id: Section; path: string; name: string; ownersOnly?: true }[] = [
  { id: "devices", path: "/console", name: "Devices" },
  { id: "audit", path: "/console/audit", name: "Activity" },
  { id: "people", path: "/console/people", name: "People", ownersOnly: true },
  { id: "account", path: "/account", name: "Account" },
];

function policy(nonce: string, formTargets: readonly string[]): string {
  return [
    "default-src 'none'",
    `style-src 'nonce-${nonce}'`,
    `script-src 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "connect-src 'self'",
    `form-action ${["'self'", ...formTargets].join(" ")}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

function Top({ console: shown }: Pick<Page, "console">) {
  return (
    <header class="top">
      <div>
        <a class="brand" href="/console">
          <svg viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round">
            <path d="M3 5h18M8 5v7a4 4 0 0 0 8 0v-1" />
            <circle cx="8" cy="5" r="1.2" />
          </svg>
          Longline
        </a>
        {shown === undefined ? null : (
          <>
            <nav aria-label="Console">
              {SECTIONS.filter((section) => section.ownersOnly !== true || shown.person.role === "owner").map(({ id, path, name }) => (
                <a href={path} {...(id === shown.here ? { "aria-current": "page" } : {})}>
                  {name}
                </a>
              ))}
            </nav>
            <span class="who">{cleanText(shown.person.name)}</span>
          </>
        )}
      </div>
    </header>
  );
}

/** Answers with a page. Text in `body` is escaped by hono/jsx; it is never marked as HTML. */
export async function page(c: Context<AppEnv>, content: Page): Promise<Response> {
  const { title, body, status = 200, script = "", formTargets = [], heading, console: shown } = content;
  const nonce = randomId();
  c.header("Content-Security-Policy", policy(nonce, formTargets));
  // Fetch §3.2: with `no-referrer` a form's Origin header would be `null`, and no state change could be told from a foreign one.
  c.header("Referrer-Policy", "same-origin");
  const html = (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <link rel="icon" href="data:," />
        <title>{`${title} · Longline`}</title>
        <style nonce={nonce}>{raw(STYLE)}</style>
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        <Top console={shown} />
        <main id="main" class={shown === undefined ? "" : "wide"}>
          {heading ?? <h1>{title}</h1>}
          {body}
        </main>
        <script nonce={nonce}>{raw(`${COMMON}${script}`)}</script>
      </body>
    </html>
  );
  // SECURITY: only the constants of this folder pass as markup; the rest is escaped.
  return c.html(`<!doctype html>${await html}`, status);
}

/** A page that only says something, and where to go on. */
export function messagePage(c: Context<AppEnv>, title: string, text: string, status: ContentfulStatusCode = 200): Promise<Response> {
  return page(c, {
    title,
    status,
    body: (
      <>
        <p>{text}</p>
        <p>
          <a href="/console">Back to your devices</a>
        </p>
      </>
    ),
  });
}
