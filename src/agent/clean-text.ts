/** What the agent adds to `cleanText`: the end of a longer text, and secrets taken out. */
import { TEXT } from "../limits.ts";
import { cleanText } from "../policy/clean-text.ts";

export { cleanText } from "../policy/clean-text.ts";

/** The last lines of a longer text, cleaned; for stderr, where the end explains. */
export function cleanTail(text: string, max: number = TEXT.message): string {
  const all = cleanText(text, Number.MAX_SAFE_INTEGER);
  return all.length <= max ? all : `…${all.slice(all.length - max + 1)}`;
}

/** Replaces every secret that is long enough to be one. */
export function redact(text: string, secrets: readonly string[]): string {
  let out = text;
  for (const secret of secrets) if (secret.length >= 8) out = out.replaceAll(secret, "[secret]");
  return out;
}
