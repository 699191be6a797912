/**
 * Keeps this device's own key out of what a call sends. Tool servers run as the agent's user and can print whatever that
 * user reads: the key file, the agent's environment. This stops the plain text, which is the accident; somebody who may
 * run any command and encodes what it prints is stopped only by another user for the agent (docs/threat-model.md).
 */
import { failure } from "./failure.ts";
import type { DispatcherOptions } from "./dispatcher.ts";
import type { CallSink, UpstreamOutcome } from "./upstreams/upstream.ts";

type Run = DispatcherOptions["run"];

/** Characters of a key's secret part, at its end. */
const SECRET_LENGTH = 43;
const WITHHELD = "The answer held this device's own key, so it was not sent. Whoever owns the device should keep the key from its tools.";
const NOT_ASKED = `{"code":-32603,"message":"The question held this device's own key, so it was not asked"}`;

/** `run`, with nothing passed on that holds the key. `warn` gets one sentence each time, without it. */
export function withoutOwnKey(deviceKey: string, run: Run, warn: (message: string) => void): Run {
  const secret = Buffer.from(deviceKey.slice(-SECRET_LENGTH));
  const holds = (bytes: Uint8Array): boolean => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes(secret);
  return async (call, sink, signal, ref) => {
    const note = (what: string): void => warn(`${call.method} ${call.target ?? ""}: ${what} held this device's key and was not passed on`);
    const outcome = await run(call, guarded(sink, holds, note), signal, ref);
    if (!says(outcome, holds)) return outcome;
    note("the answer");
    return { kind: "failed", failure: failure("refused_by_device", "unknown", WITHHELD) };
  };
}

function says(outcome: UpstreamOutcome, holds: (bytes: Uint8Array) => boolean): boolean {
  if (outcome.kind === "result") return holds(outcome.bytes);
  const message = outcome.kind === "error" ? outcome.message : outcome.failure.message;
  return holds(Buffer.from(message)) || (outcome.kind === "error" && outcome.data !== undefined && holds(outcome.data));
}

function guarded(sink: CallSink, holds: (bytes: Uint8Array) => boolean, note: (what: string) => void): CallSink {
  return {
    begun: () => sink.begun(),
    event: (method, params) => (holds(params) ? note("a notification") : sink.event(method, params)),
    ask: async (method, params, signal) => {
      if (!holds(params)) return await sink.ask(method, params, signal);
      note("a question");
      return { kind: "error", body: NOT_ASKED };
    },
  };
}
