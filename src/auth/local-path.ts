/** Where a page may send a browser on to: a path of this relay and nothing else. Pure. */
import { WEB } from "../limits.ts";

/**
 * The path and query of `text` when it stays on this relay, else `fallback`. SECURITY: browsers read `\` as `/` and
 * skip control characters, so the text is resolved as a browser would and has to come out on the same host.
 */
export function localPath(text: string | undefined, fallback: string): string {
  if (text === undefined || text.length > WEB.nextLength || !/^\/(?![/\\])[\x21-\x7e]*$/.test(text) || text.includes("\\")) return fallback;
  const url = URL.canParse(text, "https://relay.invalid") ? new URL(text, "https://relay.invalid") : undefined;
  if (url === undefined || url.origin !== "https://relay.invalid" || url.pathname.startsWith("//")) return fallback;
  return `${url.pathname}${url.search}`;
}
