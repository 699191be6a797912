/** Rights in words, for pages. */
import { cleanText } from "../policy/clean-text.ts";
import { isFull, type Rights } from "../policy/grant.ts";

/** What a grant covers, as one line; patterns are cleaned. */
export function describeRights(rights: Rights): string {
  if (isFull(rights)) return "everything it offers";
  return (["tools", "resources", "prompts"] as const)
    .flatMap((kind) =>
      rights[kind] === undefined ? [] : [`${kind}: ${rights[kind].map((pattern) => cleanText(pattern)).join(", ") || "none"}`],
    )
    .join("; ");
}
