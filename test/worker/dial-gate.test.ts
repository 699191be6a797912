/** Agents that all dial in at once. */
import { expect, it } from "vitest";
import { TUNNEL } from "../../src/limits.ts";
import { addDevice, startRelay } from "./api-support.ts";

it("those beyond the number are turned away at once and told so; the others get their socket", async () => {
  const relay = await startRelay();
  const { deviceKey } = await addDevice(relay);
  const headers = { Upgrade: "websocket", "Sec-WebSocket-Protocol": "longline.v1", Authorization: `Bearer ${deviceKey}` };
  const dials = Array.from({ length: TUNNEL.dialsAtOnce + 3 }, () => relay.send("/tunnel", { headers }));
  const answers = await Promise.all(dials);
  expect(answers.filter(({ status }) => status === 101)).toHaveLength(TUNNEL.dialsAtOnce);
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(3);
  const again = await relay.send("/tunnel", { headers });
  expect(again.status).toBe(101);
  for (const { webSocket } of [...answers, again]) {
    webSocket?.accept();
    webSocket?.close(1000);
  }
});
