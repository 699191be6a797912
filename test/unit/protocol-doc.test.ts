import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { CLOSE, closeAction } from "../../src/tunnel/close-codes.ts";
import { decodeAgentMessage, decodeRelayMessage } from "../../src/tunnel/codec.ts";
import { AGENT_FRAME_TYPES, RELAY_FRAME_TYPES } from "../../src/tunnel/frames.ts";

const page = readFileSync(new URL("../../docs/protocol.md", import.meta.url), "utf8");
const examples = [...page.matchAll(/```json (agent|relay)\n([\s\S]*?)\n```/g)].map(([, side, text]) => ({ side, text: text ?? "" }));

describe("docs/protocol.md", () => {
  test.each(examples)("the $side example parses: $text", ({ side, text }) => {
    const decoded = side === "agent" ? decodeAgentMessage(text) : decodeRelayMessage(text);
    expect(decoded).toMatchObject({ ok: true });
  });

  test("every frame of both directions has an example", () => {
    const shown = (side: string) =>
      new Set(examples.filter((e) => e.side === side).map((e) => JSON.parse(e.text.split("\n")[0] ?? "").type));
    expect(shown("agent")).toEqual(AGENT_FRAME_TYPES);
    expect(shown("relay")).toEqual(RELAY_FRAME_TYPES);
  });

  test("the close-code table lists every code with the action its range gives", () => {
    const words = { backoff: "backoff", stop: "stops for good", redial: "dials again within a second" };
    for (const code of Object.values(CLOSE)) {
      const row = page.split("\n").find((line) => line.startsWith("| ") && line.includes(String(code)));
      expect(row, `a row for ${code}`).toContain(words[closeAction(code)]);
    }
  });
});
