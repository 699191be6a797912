/**
 * Close codes of the tunnel. The range decides what an agent does, so that an old agent does the right thing
 * with a code it does not know: 4000–4099 come back with backoff, 4100–4199 stop for good, 4200–4299 redial
 * at once. 1005, 1006 and 1015 are never sent (RFC 6455 §7.4.1).
 */

export const CLOSE = {
  /** Orderly end by either side. */
  normal: 1000,
  /** The relay is going away; redial within a second. */
  goingAway: 1001,
  /** A message broke the frame rules. */
  badFrame: 4000,
  /** No `hello` in time, or a second one. */
  badHello: 4001,
  /** A message was larger than negotiated. */
  frameTooLarge: 4002,
  /** The agent did not answer a probe or acknowledge a call. */
  unresponsive: 4003,
  /** A newer socket of the same process took over, or one with `--takeover`. */
  superseded: 4004,
  /** The device key was revoked, or the device removed. */
  revoked: 4100,
  /** No common protocol version. */
  versionTooOld: 4101,
  /** Another process holds this device and is alive: another installation, or a copy of this one. */
  otherInstallation: 4102,
  /** The relay restarts; redial at once, jittered. */
  redial: 4200,
} as const;

export type CloseAction = "backoff" | "stop" | "redial";

/** What an agent does after a close code: come back with backoff, stop for good, or redial within a second. */
export function closeAction(code: number): CloseAction {
  if (code === 1001 || code === 1006 || code === 1012 || (code >= 4200 && code < 4300)) return "redial";
  if (code >= 4100 && code < 4200) return "stop";
  return "backoff";
}

/** True for codes that only the platform may report (RFC 6455 §7.4.1); sending one throws. */
export function isReservedCloseCode(code: number): boolean {
  return code === 1004 || code === 1005 || code === 1006 || code === 1015 || code < 1000 || code > 4999;
}
