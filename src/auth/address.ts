/**
 * Where a request came from: the one function that says so. On Cloudflare the platform sets the header. The embedded relay
 * believes only the header that its owner named, from the proxy in front of it; without one, the address is not known.
 */
import type { Context } from "hono";
import { type AppEnv, configOf } from "../env.ts";

const ADDRESS = /^[0-9a-fA-F.:]{2,45}$/;

/** The client's IP address, or undefined when it is not known. */
export function clientAddress(c: Context<AppEnv>): string | undefined {
  const { runtime, proxyHeader } = configOf(c.env);
  if (runtime === "cloudflare") return valid(c.req.header("cf-connecting-ip"));
  if (proxyHeader === undefined) return undefined;
  // SECURITY: the last entry is the trusted proxy's own; what is before it came from the wire.
  return valid(c.req.header(proxyHeader)?.split(",").at(-1));
}

function valid(text: string | undefined): string | undefined {
  const address = text?.trim();
  return address !== undefined && ADDRESS.test(address) ? address : undefined;
}

/** What limits count by: an IPv4 address, or the /64 of an IPv6 one, because one customer has as many as they like. */
export function addressGroup(address: string): string {
  if (!address.includes(":")) return address;
  // RFC 4291 §2.2: `::` stands for as many zero groups as are missing.
  const [head = "", tail = ""] = address.toLowerCase().split("::");
  const before = head === "" ? [] : head.split(":");
  const after = tail === "" ? [] : tail.split(":");
  const zeros = address.includes("::") ? Array.from({ length: Math.max(0, 8 - before.length - after.length) }, () => "0") : [];
  return [...before, ...zeros, ...after]
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ""))
    .join(":");
}
