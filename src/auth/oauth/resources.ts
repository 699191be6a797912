/** The `resource` parameter (RFC 8707): the MCP URL of exactly one device, on one of the relay's origins. Pure. */
import { isDeviceName } from "../../policy/device-name.ts";
import { acceptedOrigins, mcpUrl } from "../origins.ts";
import { isSecureOrigin } from "./availability.ts";

/** A well-formed resource of this relay; says nothing about whether the device exists. */
export interface Resource {
  /** Canonical text: the identifier that codes and tokens are bound to. */
  resource: string;
  /** Device name. */
  name: string;
}

/**
 * What a `resource` names here, or undefined. Exact but for the case of scheme and host (RFC 8707 §2, RFC 3986 §6.2.2.1):
 * no query, no fragment, no trailing slash, no other path.
 */
export function readResource(origins: readonly string[], text: string | null | undefined): Resource | undefined {
  if (text === null || text === undefined) return undefined;
  const slash = text.indexOf("/", text.indexOf("://") + 3);
  if (slash < 0) return undefined;
  const asked = text.slice(0, slash).toLowerCase();
  const origin = acceptedOrigins(origins).find((accepted) => accepted === asked);
  const name = text.slice(slash + "/mcp/".length);
  if (origin === undefined || !isSecureOrigin(origin) || !isDeviceName(name) || text.slice(slash) !== `/mcp/${name}`) return undefined;
  return { resource: mcpUrl(origin, name), name };
}

/** Stands in where a request names no resource of ours: `-` is no device name, so nothing is ever issued for it. */
export function noResource(canonical: string): string {
  return `${canonical}/mcp/-`;
}
