/** The two ends of a forwarded call at the object: its start, and the word that its outcome is written. */
import type { CallRequest } from "../../durable/rpc.ts";
import { TUNNEL } from "../limits.ts";
import { fitsUtf8 } from "../tunnel/utf8.ts";
import { CallRun } from "./call-run.ts";
import type { EdgeContext } from "./context.ts";
import { tell } from "./tunnel-access.ts";

/** A run that sends the call with its first step. */
export function startRun(context: EdgeContext, request: CallRequest): CallRun {
  const run = new CallRun(context.access, context.grant, request.callId, (tunnel) => {
    const delivered = context.delivered.take(context.deviceId);
    const { wakeUrl } = context.switches;
    const sent = inPieces(wakeUrl === undefined ? request : { ...request, wakeUrl });
    return tunnel.call(delivered.length === 0 ? sent : { ...sent, delivered });
  });
  const { method, target, client } = request;
  run.asked = { at: context.now(), method, ...(target === undefined ? {} : { target }), ...(client === undefined ? {} : { client }) };
  return run;
}

/** A payload that does not fit one message of the tunnel goes as a stream, which the object reads when it has room. */
function inPieces(request: CallRequest): CallRequest {
  if (fitsUtf8(request.payload, TUNNEL.maxFrameBytes)) return request;
  const body = new Blob([request.payload]);
  return { ...request, payload: "", body: { bytes: body.size, stream: body.stream() } };
}

/** The outcome of a call is written, or nobody waits for it any more: there is no resume, so nobody will ask again. */
export function outcomeWritten(context: EdgeContext, callId: string): void {
  const { access, deviceId, delivered } = context;
  if (!delivered.add(deviceId, callId, context.now())) return;
  context.waitUntil(flushLater());

  async function flushLater(): Promise<void> {
    await access.pause(TUNNEL.deliveredDelayMs);
    await Promise.all(delivered.flush(deviceId).map((id) => tell(access, (tunnel) => tunnel.delivered(id))));
  }
}
