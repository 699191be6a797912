/** What a page says after a change: a word in the query, from a closed list, so that no link can put words on a page. */
import type { Context } from "hono";
import type { AppEnv } from "../env.ts";

const TEXTS = {
  renamed: "Renamed. The old address works for 30 days more.",
  paused: "Paused. Calls are refused until you resume it.",
  resumed: "Resumed.",
  saved: "Saved.",
  revoked: "Revoked.",
  "keys-revoked": "Every key is revoked, and the tunnel is closed.",
  removed: "Removed.",
  looked: "Marked as seen.",
  cancelled: "Cancelled.",
} as const;

/** A word for what was done. */
export type DoneWord = keyof typeof TEXTS;

/** The sentence for the word in the query, if there is one. */
export function doneText(c: Context<AppEnv>): string | undefined {
  const word = c.req.query("done") ?? "";
  return Object.hasOwn(TEXTS, word) ? TEXTS[word as DoneWord] : undefined;
}

/** Goes on to a page that says what was done. */
export function doneAt(c: Context<AppEnv>, path: string, word: DoneWord): Response {
  return c.redirect(`${path}?${new URLSearchParams({ done: word }).toString()}`, 303);
}
