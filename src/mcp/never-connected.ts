/**
 * Stands in for the object of a device that never dialled in: looking at a device must not create its object, which
 * is born near the agent. Lists are empty, calls say that it is offline, and there are no sessions.
 */
import type { CallReply, CallRequest, DeviceView, Refusal } from "../../durable/rpc.ts";
import { LISTS } from "../policy/decide.ts";
import { META } from "./meta.ts";
import type { EdgeTunnel } from "./tunnel-access.ts";
import { MODERN_VERSION } from "./versions.ts";

const OFFLINE: Refusal = {
  kind: "failure",
  failure: {
    reason: "device_offline",
    outcome: "not_started",
    message: "The device has never connected. Start `longline agent` on it with its device key, then call again.",
  },
};
const UNKNOWN_SESSION = { ok: false, refusal: { kind: "session", why: "unknown" } } as const;

function emptyList(request: CallRequest, member: string): CallReply {
  const header = { type: "result", callId: request.callId, seq: 1, protocol: MODERN_VERSION, meta: { [META.offline]: true } };
  return { ok: true, first: `${JSON.stringify(header)}\n${JSON.stringify({ [member]: [] })}`, rest: null };
}

/** The stand-in for the device called `name`. */
export function neverConnected(name: string): EdgeTunnel {
  const view: DeviceView = {
    online: false,
    known: false,
    capabilities: { tools: {}, resources: {}, prompts: {} },
    serverInfo: { name, version: "0" },
    instructions: `The device "${name}" has never connected, so nothing can be listed or called yet. Start \`longline agent\` on it.`,
  };
  return {
    call: async (request) => {
      if (request.session !== undefined) return UNKNOWN_SESSION;
      const list = LISTS.get(request.method);
      return list === undefined ? { ok: false, refusal: OFFLINE } : emptyList(request, list.member);
    },
    attach: async () => ({ ok: false, refusal: OFFLINE }),
    resume: async () => ({ ok: false, refusal: OFFLINE }),
    cancel: async () => undefined,
    detach: async () => undefined,
    delivered: async () => undefined,
    describe: async () => ({ ok: true, view }),
    openSession: async () => ({ ok: false, refusal: OFFLINE }),
    useSession: async () => UNKNOWN_SESSION,
    endSession: async () => UNKNOWN_SESSION,
    setLogLevel: async () => UNKNOWN_SESSION,
    cancelInSession: async () => UNKNOWN_SESSION,
    answerInSession: async () => UNKNOWN_SESSION,
  };
}
