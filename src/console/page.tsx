/**
 * The one frame of every page: plain HTML that reads without scripts, in light and dark, on a phone. Nothing comes from
 * another origin; the one style and the one script carry a nonce (CSP 3 §2.3.1), so injected markup does nothing.
 */
import type { Context } from "hono";
import { raw } from "hono/html";
import type { Child } from "hono/jsx";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { AppEnv } from "../env.ts";
import { randomId } from "../auth/secrets.ts";
import { STYLE } from "./style.ts";

/** One page. */
export interface Page {
  title: string;
  body: Child;
  status?: ContentfulStatusCode;
  /** A small script of ours, without `</`; never made from a request. */
  script?: string;
  /**
   * Origins or schemes a form of this page may end at beside this relay, redirects included (`https://app.example`,
   * `vscode:`): only for a page that exists to send the person there.
   */
  formTargets?: readonly string[];
}

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

/** Answers with a page. Text in `body` is escaped by hono/jsx; it is never marked as HTML. */
export async function page(c: Context<AppEnv>, { title, body, status = 200, script, formTargets = [] }: Page): Promise<Response> {
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
        <title>{`${title} · Longline`}</title>
        <style nonce={nonce}>{raw(STYLE)}</style>
      </head>
      <body>
        <header>
          <a href="/account">Longline</a>
        </header>
        <main>
          <h1>{title}</h1>
          {body}
        </main>
        {script === undefined ? null : <script nonce={nonce}>{raw(script)}</script>}
      </body>
    </html>
  );
  // SECURITY: only the constants of this file pass as markup; the rest is escaped.
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
          <a href="/account">Your account</a>
        </p>
      </>
    ),
  });
}
