/**
 * Addresses that a relay may post to when a call comes for a device that sleeps: https on the public internet, or, on an
 * embedded relay, a program of its own machine. The network keeps names from leading elsewhere; this refuses what already
 * shows in the text. Pure.
 */

const LENGTH = 2_048;
const LOOPBACK = /^(?:localhost|\[::1\]|127(?:\.\d{1,3}){3})$/;
const LOCAL_NAME = /^(?:localhost|[^.]+|.*\.(?:localhost|local|internal|lan|home|home\.arpa))\.?$/;
/** RFC 6890: this network, private, shared, loopback, link-local, reserved. A URL shows IPv4 in its usual form. */
const LOCAL_V4 =
  /^(?:0|10|127|169\.254|172\.(?:1[6-9]|2\d|3[01])|192\.168|192\.0\.0|198\.1[89]|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])|2[2-5]\d)\./;

/** What is wrong with an address for `longline device set --wake-url`; undefined for one that can be used. */
export function wakeUrlProblem(text: string, runtime: "embedded" | "cloudflare"): string | undefined {
  const url = text.length <= LENGTH && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || url.username !== "" || url.password !== "" || url.hash !== "")
    return "A wake URL is an address without user name and fragment, such as https://ntfy.sh/my-phone.";
  if (isLoopbackWake(url)) return runtime === "embedded" ? undefined : "A relay on Cloudflare reaches public addresses only.";
  if (url.protocol !== "https:") return "A wake URL must be https.";
  // An IPv6 literal is refused as a whole: no wake service has one, and its private forms are many.
  if (url.hostname.startsWith("[") || LOCAL_V4.test(url.hostname) || LOCAL_NAME.test(url.hostname))
    return "A wake URL must be a public address.";
  return undefined;
}

/** True for an address of the machine itself. */
export function isLoopbackWake(url: URL): boolean {
  return LOOPBACK.test(url.hostname) && (url.protocol === "http:" || url.protocol === "https:");
}

/** What people and logs may see of it: the rest is often a secret topic. */
export function shownWakeUrl(text: string): string {
  return URL.canParse(text) ? `${new URL(text).origin}/…` : "…";
}
