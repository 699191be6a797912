/** What the device key opens, and whether a WebSocket gets through to where an agent dials in. */
import { join } from "node:path";
import { WebSocket } from "ws";
import { z } from "zod";
import { holderOf } from "../../agent/process-lock.ts";
import { proxyRefusal, routeTo } from "../../agent/network.ts";
import { openExchange, readBody } from "../../agent/upstreams/http-exchange.ts";
import { API, DOCTOR } from "../../limits.ts";
import { cleanText } from "../../policy/clean-text.ts";
import { systemCode } from "../../serve/secret-file.ts";
import { SUBPROTOCOL } from "../../tunnel/frames.ts";
import { relativeTime } from "../times.ts";
import { failed, ok, skipped, warning, type Finding } from "./finding.ts";

const KeyState = z.looseObject({
  device: z.string(),
  state: z.enum(["online", "offline", "never", "paused", "revoked"]),
  rivalAt: z.number().nullable(),
});
type KeyState = z.infer<typeof KeyState>;

/** Checks a key at its relay. Never rejects. */
export async function checkKey(relay: URL, deviceKey: string, stateDir: string): Promise<Finding[]> {
  const url = new URL("/tunnel/state", relay);
  const headers = { authorization: `Bearer ${deviceKey}` };
  try {
    const response = await openExchange({ url, method: "GET", headers, viaProxy: true }, AbortSignal.timeout(DOCTOR.stepMs));
    const text = (await readBody(response, API.maxBodyBytes)).toString("utf8");
    if (response.statusCode === 401) return [refusedKey()];
    if (response.statusCode === 429) return [failed("key", "too many keys were refused from this address", "Wait a minute and try again.")];
    const state = response.statusCode === 200 ? KeyState.safeParse(JSON.parse(text)) : undefined;
    // A relay of another version may not have the question; dialling in shows as much.
    const said =
      state?.success === true
        ? keyFindings(state.data, holderOf(join(stateDir, "lock")) !== undefined)
        : [skipped("key", "this relay cannot say more about the key")];
    return [...said, await checkWebSocket(relay, deviceKey)];
  } catch (error) {
    return [failed("key", `the relay could not be asked about the key (${cleanText(systemCode(error) ?? "failed", 64)})`, "Try again.")];
  }
}

function refusedKey(): Finding {
  return failed(
    "key",
    "the relay does not accept this device key",
    "It was revoked or replaced, its device was removed, or it belongs to another relay. `longline device rotate-key NAME` makes a new one.",
  );
}

function keyFindings({ device, state, rivalAt }: KeyState, runsHere: boolean): Finding[] {
  const name = cleanText(device);
  if (state === "paused") return [failed("key", `the device ${name} is paused`, `An owner ends that with: longline device resume ${name}`)];
  if (state === "online" && !runsHere) {
    const advice =
      "Stop the agent on the other machine, or give each machine a device of its own with `longline device add`. --takeover replaces it.";
    return [failed("key", `the key is good, but another machine is online with it as ${name}`, advice)];
  }
  const found = [
    ok("key", state === "online" ? `the key is good, and the agent here is online as ${name}` : `the key is good; it opens ${name}`),
  ];
  if (rivalAt !== null) {
    const when = relativeTime(rivalAt, Date.now());
    found.push(
      warning("key", `another machine tried to use this key (${when})`, "If that was not you: longline device rotate-key " + name),
    );
  }
  return found;
}

/** Dials as the agent does and leaves before it says hello, so that a living tunnel is not disturbed. */
async function checkWebSocket(relay: URL, deviceKey: string): Promise<Finding> {
  const url = new URL("/tunnel", relay);
  url.protocol = relay.protocol === "https:" ? "wss:" : "ws:";
  return await new Promise((resolve) => {
    const socket = new WebSocket(url, [SUBPROTOCOL], {
      headers: { authorization: `Bearer ${deviceKey}` },
      perMessageDeflate: false,
      handshakeTimeout: DOCTOR.stepMs,
      ...routeTo(url),
    });
    const done = (finding: Finding): void => {
      resolve(finding);
      socket.terminate();
    };
    socket.once("open", () => done(ok("websocket", "a WebSocket gets through")));
    socket.once("unexpected-response", (_request, response) => done(blocked(`HTTP ${response.statusCode ?? 0} instead of 101`)));
    socket.on("error", (error) => {
      const code = systemCode(error) ?? "handshake failed";
      const refused = proxyRefusal(code);
      done(blocked(refused === undefined ? cleanText(code, 64) : `HTTP ${refused} of the proxy`));
    });
  });
}

function blocked(why: string): Finding {
  return failed(
    "websocket",
    `HTTP reaches the relay, but a WebSocket does not (${why})`,
    "A proxy in between does not pass WebSockets on: use https for --relay, set HTTPS_PROXY to a proxy that allows CONNECT, or have the relay's address excepted.",
  );
}
