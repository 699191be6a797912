/** The examples of docs/protocol.md that show what a device's settings change. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { DeviceSettings } from "../../src/policy/device-settings.ts";
import { EdgeHarness } from "../support/edge-harness.ts";
import { resultMessage, whole } from "../support/fake-tunnel.ts";

const page = readFileSync(new URL("../../docs/protocol.md", import.meta.url), "utf8");
const blocks = [...page.matchAll(/```http (\S+)\n([\s\S]*?)\n```/g)].map(([, setting = "", text = ""]) => ({ setting, text }));

function settingsOf(setting: string): DeviceSettings {
  const [name = "", value] = setting.split("=");
  return DeviceSettings.parse({ [name]: value ?? true });
}

/** The lines of an exchange with one mark, without it. */
function marked(exchange: string, mark: string): string[] {
  const lines = exchange.split("\n").filter((line) => line.startsWith(`${mark} `));
  return lines.map((line) => line.slice(2));
}

async function play(edge: EdgeHarness, exchange: string, session: string | null): Promise<string | null> {
  const sent = marked(exchange, ">");
  const [status = "", answer = ""] = marked(exchange, "<");
  const headers = sent.slice(0, -1).map((line) => line.replace("SESSION", session ?? "none").split(": ") as [string, string]);
  const got = await edge.exchange({ text: sent.at(-1) ?? "", headers: Object.fromEntries(headers) });
  expect([got.status, got.json]).toMatchObject([Number(status), JSON.parse(answer)]);
  return got.headers.get("mcp-session-id") ?? session;
}

describe("docs/protocol.md", () => {
  test.each(blocks)("the example of $setting is what happens: $text", async ({ setting, text }) => {
    const edge = new EdgeHarness();
    edge.switches = settingsOf(setting);
    edge.tunnel.onCall = ({ callId, method }) => whole(resultMessage(callId, method === "tools/list" ? { tools: [] } : { content: [] }));
    let session: string | null = null;
    for (const exchange of text.split("\n\n")) {
      if (exchange.startsWith("(")) edge.tunnel.isIdle = true;
      else session = await play(edge, exchange, session);
    }
  });

  test("each setting has two examples", () => {
    for (const name of Object.keys(DeviceSettings.shape)) {
      // What a wake URL does is not in any answer: test/e2e/wake.test.ts.
      if (name === "wakeUrl") continue;
      expect(blocks.filter(({ setting }) => setting.split("=")[0] === name).length, name).toBeGreaterThanOrEqual(2);
    }
  });
});
