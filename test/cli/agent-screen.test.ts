/** What an agent's person sees: lines in a log, and a state line on a terminal. */
import { expect, test } from "vitest";
import { AgentScreen } from "../../src/cli/agent-screen.ts";
import type { Terminal } from "../../src/cli/terminal.ts";

function screen(errColumns?: number) {
  const lines: string[] = [];
  let painted = "";
  const terminal: Terminal = {
    env: {},
    cwd: "/",
    columns: undefined,
    hasColor: false,
    errColumns,
    paint: (text) => void (painted = text),
    out: () => undefined,
    err: (text) => void lines.push(text),
  };
  let at = 1_000_000;
  const shown = new AgentScreen(terminal, () => at);
  return { shown, lines, painted: () => painted.replace("\r\u001b[2K", ""), pass: (ms: number) => (at += ms) };
}

const CALL = { type: "call", callId: "c_1", method: "tools/call", target: "lamp", grant: "g_1", label: "Ada's \u001b[31mlaptop" } as const;

test("a call is shown with its caller's label, its end with how long it took, and its steps at most once a second", () => {
  const { shown, lines, pass } = screen();
  shown.event(CALL);
  for (let step = 1; step <= 30; step += 1) {
    pass(100);
    shown.event({ type: "progress", callId: "c_1", progress: step, total: 30, message: "dimming\u001b[2J" });
  }
  shown.event({ type: "call_end", callId: "c_1", outcome: "result" });
  expect(lines[0]).toBe("call lamp for Ada's laptop");
  expect(lines.at(-1)).toBe("done lamp for Ada's laptop after 3.0 s");
  expect(lines.slice(1, -1)).toEqual([
    "step lamp for Ada's laptop: 1/30 dimming",
    "step lamp for Ada's laptop: 11/30 dimming",
    "step lamp for Ada's laptop: 21/30 dimming",
  ]);
});

test("a failed call says its reason, and nothing but lines is written without a terminal", () => {
  const { shown, lines, painted } = screen();
  shown.event({ ...CALL, method: "resources/read", target: "file:///a" });
  shown.event({ type: "call_end", callId: "c_1", outcome: "device_timeout" });
  shown.event({ type: "online", generation: 1, device: "pi", mcpUrl: "https://relay.example/mcp/pi" });
  expect(lines).toEqual([
    "call resources/read file:///a for Ada's laptop",
    "device_timeout resources/read file:///a for Ada's laptop after 0 ms",
    "online as pi: https://relay.example/mcp/pi",
  ]);
  expect(painted()).toBe("");
});

test("a terminal has a state line with what runs and how far it is, cut to its width, and gone at the end", () => {
  const { shown, lines, painted, pass } = screen(80);
  shown.event({ type: "online", generation: 1, device: "pi", mcpUrl: "https://relay.example/mcp/pi" });
  shown.event({ type: "catalogue", digest: "d", tools: 3 });
  expect(painted()).toBe("online as pi | 3 tools");
  shown.event(CALL);
  pass(1_500);
  shown.event({ type: "progress", callId: "c_1", progress: 3, total: 8, message: undefined });
  expect(painted()).toBe("online as pi | 3 tools | lamp for Ada's laptop 1.5 s 3/8");
  expect(lines.filter((line) => line.startsWith("step"))).toEqual([]);
  shown.event({ ...CALL, callId: "c_2", target: "x".repeat(500) });
  expect(painted().length).toBe(79);
  shown.close();
  expect(painted()).toBe("");
});
