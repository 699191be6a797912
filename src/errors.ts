/**
 * Stable error codes. A code and its reason are API, its text is not. Texts say what to do and never carry a
 * secret, a stack or the message of an unknown error.
 */

/** Whether a failed call may have run at the device. */
export type Outcome = "not_started" | "unknown";

/** Failures of ours: JSON-RPC code and public text, by reason. The list is closed. */
export const REASONS = {
  device_offline: { code: 1001, text: "The device is offline. Start `longline agent` on it, then call again." },
  device_timeout: { code: 1002, text: "The device did not answer in time." },
  tunnel_lost: { code: 1003, text: "The link to the device was lost during the call. Check what the tool did before calling again." },
  agent_restarted: { code: 1004, text: "The agent on the device restarted during the call. Check what the tool did before calling again." },
  too_large: { code: 1005, text: "A message was larger than allowed. Ask for less, or raise the limit." },
  rate_limited: { code: 1006, text: "Too many calls at once. Wait and call again." },
  upstream_failed: { code: 1007, text: "The tool server on the device failed. `longline status` on the device's side says why." },
  refused_by_device: { code: 1008, text: "The device's own policy refused this call." },
  cancelled: { code: 1009, text: "The call was cancelled." },
  input_expired: { code: 1010, text: "The call waited too long for an answer and ended. Call again." },
} as const;
export type Reason = keyof typeof REASONS;
export const REASON_NAMES = Object.keys(REASONS) as [Reason, ...Reason[]];

/** One failure of ours, as it crosses from object to edge. `data` holds the typed extras (`limitMs`, `size`, …). */
export interface Failure {
  reason: Reason;
  outcome: Outcome;
  /** Overrides the public text; for a person, bounded, free of secrets. */
  message?: string;
  data?: Record<string, unknown>;
}

/** JSON-RPC and MCP codes that the edge emits, with their clause. */
export const RPC = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  /** 2025-era `resources/read` only. */
  resourceNotFound: -32002,
  /** MCP 2026-07-28, Streamable HTTP: HeaderMismatch. */
  headerMismatch: -32020,
  /** MCP 2026-07-28: MissingRequiredClientCapability. */
  missingCapability: -32021,
  /** MCP 2026-07-28: UnsupportedProtocolVersion. */
  unsupportedVersion: -32022,
} as const;

/** The JSON-RPC error object of a failure of ours (design section 5). */
export function failureToRpcError(failure: Failure): { code: number; message: string; data: Record<string, unknown> } {
  const known = REASONS[failure.reason];
  return {
    code: known.code,
    message: failure.message ?? known.text,
    data: { ...failure.data, reason: failure.reason, outcome: failure.outcome },
  };
}

/** Codes of the owner API and the command line; each maps to an HTTP status and an exit code. */
export const API_ERRORS = {
  bad_request: { status: 400, exit: 2 },
  not_authorised: { status: 401, exit: 3 },
  forbidden: { status: 403, exit: 3 },
  not_found: { status: 404, exit: 4 },
  conflict: { status: 409, exit: 1 },
  too_large: { status: 413, exit: 2 },
  /** The host of the request is none of the relay's origins (RFC 9110 §15.5.20). */
  misdirected: { status: 421, exit: 5 },
  upgrade_required: { status: 426, exit: 2 },
  too_many: { status: 429, exit: 1 },
  incomplete: { status: 502, exit: 1 },
  internal: { status: 500, exit: 1 },
  relay_unreachable: { status: 0, exit: 5 },
  device_offline: { status: 503, exit: 6 },
  failed: { status: 0, exit: 1 },
} as const;
export type ApiErrorCode = keyof typeof API_ERRORS;

/** An expected failure of the owner API or a command: `code` is stable, `message` is public. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: ApiErrorCode;
  constructor(code: ApiErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
