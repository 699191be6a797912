/** The tools of the catalogue as a person sees them who decides about access: bounded, and only what helps to decide. */
import { CATALOGUE, TEXT } from "../src/limits.ts";
import { cleanText } from "../src/policy/clean-text.ts";
import type { Catalogue } from "./catalogue.ts";
import type { OfferedTool } from "./rpc.ts";

const encoder = new TextEncoder();
/** Bytes of a digest: enough to see a change, which is all it is for. */
const DIGEST_BYTES = 8;

/** The tools as last known, or null when no catalogue is known. Text is the device's own and is cleaned here. */
export function offeredTools(catalogue: Catalogue): OfferedTool[] | null {
  const items = catalogue.items("tools");
  return items === undefined ? null : items.flatMap((item) => offered(item)).slice(0, CATALOGUE.maxTools);
}

/** One tool as the device defines it, as JSON text; null when the catalogue does not have it. */
export function offeredTool(catalogue: Catalogue, name: string): string | null {
  const item = (catalogue.items("tools") ?? []).find((tool) => nameOf(tool) === name);
  return item === undefined ? null : JSON.stringify(item);
}

/** Name and digest of each tool's whole definition; null when no catalogue is known. */
export async function toolDigests(catalogue: Catalogue): Promise<[string, string][] | null> {
  const items = catalogue.items("tools");
  if (items === undefined) return null;
  return await Promise.all(
    items.slice(0, CATALOGUE.maxTools).map(async (item) => [nameOf(item) ?? "", await digestOf(JSON.stringify(item))]),
  );
}

async function digestOf(text: string): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(text)));
  return [...hash.subarray(0, DIGEST_BYTES)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function nameOf(item: unknown): string | undefined {
  const name = typeof item === "object" && item !== null ? (item as Record<string, unknown>)["name"] : undefined;
  return typeof name === "string" ? name : undefined;
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
