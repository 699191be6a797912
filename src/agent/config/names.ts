/** What names and addresses in the configuration look like. */
import { z } from "zod";
import { NAMES } from "../../limits.ts";

/** An alias of an upstream or feed. */
export const ALIAS = /^[A-Za-z0-9_-]{1,64}$/;
/** MCP 2025-11-25, Tools, "Tool Names". */
export const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;

export const Text = z.string().min(1);
/** Environment of a program. */
export const Environment = z.record(
  z.string().regex(/^[^=\0]+$/, { error: "is no name of a variable" }),
  z.string().refine((value) => !value.includes("\0"), { error: "holds a character that no variable takes" }),
);
/** Program and arguments. */
export const Command = z
  .array(z.string().refine((part) => !part.includes("\0"), { error: "holds a character that no command line takes" }))
  .min(1);
/** Before names of tools and prompts; the whole has to stay a name. */
export const NamePrefix = z
  .string()
  .regex(/^[A-Za-z0-9_.-]+$/, { error: "may hold letters, digits, _ . and - only" })
  .max(NAMES.prefix);
/** Before an address, which then begins with another scheme (RFC 3986, 3.1). */
export const ResourcePrefix = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9+.-]*$/, { error: "must begin with a letter and hold letters, digits, + . and - only, such as files+" })
  .max(NAMES.prefix);

/** True for an address of one of the schemes, without credentials in it. */
export function isAddress(text: string, schemes: readonly string[]): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, hostname } = new URL(text);
  return schemes.includes(protocol) && username === "" && password === "" && hostname !== "";
}
