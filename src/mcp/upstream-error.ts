/**
 * An upstream's JSON-RPC error for the caller's era (design section 5): code and data pass, except codes that a
 * revision reserves or forbids. Pure.
 */
import { RPC } from "../errors.ts";
import type { UpstreamError } from "../tunnel/frames.ts";
import type { Answer } from "./answer.ts";
import type { Shape } from "./shape.ts";
import { oneLine } from "./splice.ts";
import { isModernVersion } from "./versions.ts";

/** 2025-11-25: URL elicitation required; the stateless revision forbids it. */
const URL_ELICITATION_REQUIRED = -32042;
/** Codes of the stateless revision whose HTTP status is 400. */
const STATUS_400: ReadonlySet<number> = new Set([RPC.headerMismatch, RPC.missingCapability, RPC.unsupportedVersion]);
const RESERVED = { from: -32099, to: -32020 } as const;

type Verdict = { kind: "pass"; status: number; code: number } | { kind: "wrap" };

function judge(shape: Shape, frame: UpstreamError): Verdict {
  const { code } = frame;
  const isRead = shape.method === "resources/read";
  const fromModern = isModernVersion(frame.protocol);
  if (shape.era === "legacy") {
    // A legacy caller knows "no such resource" by its own code only; a legacy upstream has chosen already.
    if (isRead && code === RPC.invalidParams && fromModern) return { kind: "pass", status: 200, code: RPC.resourceNotFound };
    return { kind: "pass", status: 200, code };
  }
  if (isRead && code === RPC.resourceNotFound) return { kind: "pass", status: 200, code: RPC.invalidParams };
  if (code === RPC.methodNotFound) return { kind: "pass", status: 404, code };
  if (STATUS_400.has(code) && fromModern) return { kind: "pass", status: 400, code };
  const isForbidden = (code >= RESERVED.from && code <= RESERVED.to) || code === URL_ELICITATION_REQUIRED || code === RPC.resourceNotFound;
  return isForbidden ? { kind: "wrap" } : { kind: "pass", status: 200, code };
}

/** The answer for an upstream's error; `data` is the error's data as JSON text, or "". */
export function upstreamErrorAnswer(shape: Shape, frame: UpstreamError, data: string): Answer {
  const verdict = judge(shape, frame);
  const dataText = oneLine(data);
  const member = dataText.trim() === "" ? "" : `,"data":${dataText}`;
  const head = `{"jsonrpc":"2.0","id":${shape.idText},"error":`;
  const message = JSON.stringify(frame.message);
  if (verdict.kind === "pass") {
    return { status: verdict.status, body: `${head}{"code":${verdict.code},"message":${message}${member}}}` };
  }
  const upstream = `{"code":${frame.code}${member}}`;
  return { status: 200, body: `${head}{"code":${RPC.internalError},"message":${message},"data":{"upstream":${upstream}}}}` };
}
