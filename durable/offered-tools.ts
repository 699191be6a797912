/** The tools of the catalogue as a person sees them who decides about access: bounded, and only what helps to decide. */
import { CATALOGUE, TEXT } from "../src/limits.ts";
import { cleanText } from "../src/policy/clean-text.ts";
import type { Catalogue } from "./catalogue.ts";
import type { OfferedTool } from "./rpc.ts";

/** The tools as last known, or null when no catalogue is known. Text is the device's own and is cleaned here. */
export function offeredTools(catalogue: Catalogue): OfferedTool[] | null {
  const items = catalogue.items("tools");
  return items === undefined ? null : items.flatMap((item) => offered(item)).slice(0, CATALOGUE.maxTools);
}

function offered(item: unknown): OfferedTool[] {
  if (typeof item !== "object" || item === null) return [];
  const { name, title, description, annotations } = item as Record<string, unknown>;
  if (typeof name !== "string") return [];
  const hints = typeof annotations === "object" && annotations !== null ? (annotations as Record<string, unknown>) : {};
  return [
    {
      name,
      ...(typeof title === "string" ? { title: cleanText(title, TEXT.label) } : {}),
      ...(typeof description === "string" ? { description: cleanText(description, TEXT.label * 2) } : {}),
      readOnly: hints["readOnlyHint"] === true,
      destructive: hints["readOnlyHint"] !== true && hints["destructiveHint"] === true,
    },
  ];
}
