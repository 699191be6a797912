/** From a `call` frame and its payload to what an upstream is asked. */
import { payloadText, type Payload } from "../tunnel/codec.ts";
import type { Call } from "../tunnel/frames.ts";
import { checkParams, ParamsError, type CheckedParams } from "./upstreams/params.ts";
import type { UpstreamCall } from "./upstreams/upstream.ts";

/** The call as its upstream gets it. */
export function requestOf(frame: Call, params: CheckedParams): UpstreamCall {
  const { method, target, caller, client, meta, progress, logLevel, paramHeaders, names } = frame;
  return { method, target, params, grant: caller.grant, client, meta, progress: progress === true, logLevel, paramHeaders, names };
}

/** The checked params of a call, or what is wrong with them. */
export function readParams(frame: Call, payload: string): CheckedParams | string {
  try {
    return checkParams(frame, payload);
  } catch (error) {
    if (error instanceof ParamsError) return error.message;
    throw error;
  }
}

/** A payload as text; null for what is not UTF-8. */
export function textOf(payload: Payload | undefined): string | null {
  try {
    return payloadText(payload);
  } catch {
    return null; // not UTF-8
  }
}
