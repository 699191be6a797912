/** What tools print of the device's own key stays at the device. */
import { describe, expect, test } from "vitest";
import { withoutOwnKey } from "../../src/agent/own-key.ts";
import type { AskAnswer, CallSink, UpstreamCall, UpstreamOutcome } from "../../src/agent/upstreams/upstream.ts";
import { DEVICE_KEY } from "./harness.ts";

const CALL = { method: "tools/call", target: "cat" } as UpstreamCall;
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const result = (text: string): UpstreamOutcome => ({ kind: "result", protocol: "p", bytes: bytes(text) });
const error = (message: string, data?: string): UpstreamOutcome => ({
  kind: "error",
  protocol: "p",
  code: -32000,
  message,
  data: data === undefined ? undefined : bytes(data),
});

function sinkOf() {
  const sent: string[] = [];
  const sink: CallSink = {
    begun: () => undefined,
    event: (_method, params) => void sent.push(new TextDecoder().decode(params)),
    ask: async (_method, params): Promise<AskAnswer> => {
      sent.push(new TextDecoder().decode(params));
      return { kind: "result", body: "{}" };
    },
  };
  return { sent, sink };
}

async function run(work: (sink: CallSink) => Promise<UpstreamOutcome>) {
  const { sent, sink } = sinkOf();
  const warnings: string[] = [];
  const guarded = withoutOwnKey(
    DEVICE_KEY,
    (_call, inner) => work(inner),
    (message) => warnings.push(message),
  );
  const outcome = await guarded(CALL, sink, new AbortController().signal, undefined);
  return { outcome, sent, warnings };
}

describe("an answer that holds the key", () => {
  test.each([
    ["a result", result(`{"content":[{"type":"text","text":"LONGLINE_DEVICE_KEY=${DEVICE_KEY}\\n"}]}`)],
    ["its secret part alone", result(`{"text":"${DEVICE_KEY.slice(-43)}"}`)],
    ["an error", error(`cannot read ${DEVICE_KEY}`)],
    ["an error's data", error("failed", `{"env":"${DEVICE_KEY}"}`)],
  ])("is withheld: %s", async (_name, outcome) => {
    const done = await run(async () => outcome);
    expect(done.outcome).toMatchObject({ kind: "failed", failure: { reason: "refused_by_device", outcome: "unknown" } });
    expect(done.warnings).toEqual(["tools/call cat: the answer held this device's key and was not passed on"]);
    expect(JSON.stringify(done)).not.toContain(DEVICE_KEY.slice(-43));
  });

  test.each([result(`{"text":"${DEVICE_KEY.slice(0, -1)}"}`), error("no key"), result("")])(
    "and one that does not is passed on as it is",
    async (outcome) => {
      const done = await run(async () => outcome);
      expect(done.outcome).toBe(outcome);
      expect(done.warnings).toEqual([]);
    },
  );
});

test("notifications and questions that hold it go nowhere; others do", async () => {
  let answer: AskAnswer | undefined;
  const { sent, warnings } = await run(async (sink) => {
    sink.event("notifications/message", bytes(`{"data":"${DEVICE_KEY}"}`));
    sink.event("notifications/progress", bytes(`{"progress":1}`));
    answer = await sink.ask("elicitation/create", bytes(`{"message":"${DEVICE_KEY}"}`));
    return result("{}");
  });
  expect(sent).toEqual(['{"progress":1}']);
  expect(answer?.kind).toBe("error");
  expect(warnings).toHaveLength(2);
});
