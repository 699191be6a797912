/** Notifications of calls, and the end of calls by either side, over a real relay, agent and upstream. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LegacySession } from "../support/legacy-session.ts";
import { answerOf, postTool } from "../support/modern-call.ts";
import { rawUpstream, type RawUpstream } from "../support/raw-upstream.ts";
import { messagesOf, type Arrived } from "../support/sse-messages.ts";
import { startStack, type Stack } from "../support/stack.ts";

const LOG_LEVEL = "io.modelcontextprotocol/logLevel";

async function all(response: Response): Promise<Arrived[]> {
  const arrived: Arrived[] = [];
  for await (const one of messagesOf(response)) arrived.push(one);
  return arrived;
}

interface Note {
  method?: string;
  params?: { progressToken?: unknown; progress?: number; level?: string; data?: unknown };
}
const notes = (arrived: readonly Arrived[], method: string): NonNullable<Note["params"]>[] =>
  arrived
    .map(({ message }) => message as Note)
    .filter((note) => note.method === method)
    .map((note) => note.params ?? {});

describe.each(["legacy", "modern"] as const)("with a %s upstream", (era) => {
  let upstream: RawUpstream;
  let stack: Stack;
  beforeAll(async () => {
    upstream = await rawUpstream(era);
    stack = await startStack({ agent: upstream.agent, alsoStop: [upstream] });
  });
  afterAll(() => stack?.stop());

  test.each(["t", "", 0, 7.5])(
    "progress comes in order with the caller's own token %j, one line each, then the answer and the end",
    async (token) => {
      const response = await postTool(stack, "chatter", { count: 5 }, { meta: { progressToken: token } });
      expect(response.headers.get("content-type")).toBe("text/event-stream");
      expect(response.headers.get("x-accel-buffering")).toBe("no");
      expect(response.headers.get("cache-control")).toBe("no-cache, no-transform");
      const arrived = await all(response);
      expect(notes(arrived, "notifications/progress").map((note) => [note.progressToken, note.progress])).toEqual(
        [1, 2, 3, 4, 5].map((n) => [token, n]),
      );
      for (const { raw } of arrived) expect(raw).toMatch(/^data: [^\n\r]*$/);
      expect(arrived.at(-1)?.message).toMatchObject({ id: 1, result: { content: [{ text: "done" }] } });
      expect(arrived).toHaveLength(6);
    },
  );

  test("without a token there is no progress, without a level no log, and the answer is one JSON document", async () => {
    const response = await postTool(stack, "chatter", { count: 4 });
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.json()).toMatchObject({ id: 1, result: { resultType: "complete" } });
  });

  test("logs come at the level of the call, whatever other calls asked for", async () => {
    const levels = async (level: string): Promise<unknown[]> =>
      notes(await all(await postTool(stack, "chatter", { count: 8 }, { meta: { [LOG_LEVEL]: level } })), "notifications/message").map(
        (note) => note.level,
      );
    const everything = ["info", "warning", "error", "debug", "info", "warning", "error", "debug"];
    expect(await levels("debug")).toEqual(everything);
    expect(await levels("warning")).toEqual(["warning", "error", "warning", "error"]);
    expect(await levels("emergency")).toEqual([]);
    expect(await levels("debug")).toEqual(everything);
  });

  test("a session hears info and above until it says otherwise, and says it for itself only", async () => {
    const [quiet, loud] = await Promise.all([LegacySession.open(stack.mcpUrl, stack.token), LegacySession.open(stack.mcpUrl, stack.token)]);
    const levels = async (session: LegacySession): Promise<unknown[]> => {
      const { before } = await session.callTool("chatter", { count: 4 });
      return before.map((message) => (message as Note).params?.level);
    };
    expect(await levels(quiet)).toEqual(["info", "warning", "error"]);
    expect((await loud.request("logging/setLevel", { level: "debug" })).answer).toMatchObject({ result: {} });
    expect(await levels(loud)).toEqual(["info", "warning", "error", "debug"]);
    expect((await quiet.request("logging/setLevel", { level: "error" })).answer).toMatchObject({ result: {} });
    expect(await levels(quiet)).toEqual(["error"]);
    expect(await levels(loud)).toEqual(["info", "warning", "error", "debug"]);
  });

  test("a notification arrives while the call still runs; closing the stream then cancels it at the upstream", async () => {
    const before = (await upstream.seen("cancelled")).length;
    const leave = new AbortController();
    const response = await postTool(stack, "speak_and_hang", {}, { meta: { progressToken: "p" }, signal: leave.signal });
    for await (const { message } of messagesOf(response)) {
      expect(message).toMatchObject({ method: "notifications/progress", params: { progress: 1 } });
      break;
    }
    leave.abort();
    const hung = await upstream.seen("hang");
    const cancelled = await upstream.sees("cancelled", before + 1);
    expect(cancelled.at(-1)).toMatchObject({ pid: hung.at(-1)?.pid, requestId: hung.at(-1)?.["id"] });
  });

  test("closing before anything was sent cancels too, and only this call", async () => {
    const [hangs, cancels] = [(await upstream.seen("hang")).length, (await upstream.seen("cancelled")).length];
    const [leave, stay] = [new AbortController(), new AbortController()];
    const gone = postTool(stack, "hang", {}, { signal: leave.signal }).catch(() => undefined);
    const [first] = (await upstream.sees("hang", hangs + 1)).slice(-1);
    const other = postTool(stack, "hang", {}, { signal: stay.signal });
    await upstream.sees("hang", hangs + 2);
    leave.abort();
    await gone;
    const cancelled = (await upstream.sees("cancelled", cancels + 1)).slice(cancels);
    expect(cancelled.map((seen) => seen["requestId"])).toEqual([first?.["id"]]);
    // The other one goes on: its stream was opened and has nothing but comments so far.
    const response = await other;
    expect(response.status).toBe(200);
    stay.abort();
    await upstream.sees("cancelled", cancels + 2);
  });

  test("a quiet call is kept alive by comments only", async () => {
    const cancels = (await upstream.seen("cancelled")).length;
    const leave = new AbortController();
    const response = await postTool(stack, "hang", {}, { signal: leave.signal });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const text: string[] = [];
    // The comment at once, and the first of the timer's.
    while (text.join("").length < 2 * ":\n\n".length) text.push(new TextDecoder().decode((await reader.read()).value));
    expect(text.join("")).toMatch(/^(:\n\n)+$/);
    leave.abort();
    await upstream.sees("cancelled", cancels + 1);
  });

  test("a legacy client that disconnects cancels nothing; notifications/cancelled does, in its own session only, and is not answered", async () => {
    const [hangs, cancels] = [(await upstream.seen("hang")).length, (await upstream.seen("cancelled")).length];
    const [own, sibling] = await Promise.all([
      LegacySession.open(stack.mcpUrl, stack.token),
      LegacySession.open(stack.mcpUrl, stack.token),
    ]);
    const call = (id: number) => ({ jsonrpc: "2.0", id, method: "tools/call", params: { name: "hang", arguments: {} } });
    const cancel = (requestId: unknown) => ({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } });
    const leave = new AbortController();
    const left = own.post(call(7), { signal: leave.signal });
    await upstream.sees("hang", hangs + 1);
    const waiting = own.post(call(8));
    await upstream.sees("hang", hangs + 2);
    expect((await left).status).toBe(200);
    leave.abort();
    for (const requestId of [7, 8]) expect((await sibling.post(cancel(requestId))).status).toBe(202);
    for (const requestId of ["7", 9, 8]) expect((await own.post(cancel(requestId))).status).toBe(202);
    expect(await all(await waiting)).toEqual([]);
    // The one whose client left still runs: it takes a cancel of its own.
    expect((await own.post(cancel(7))).status).toBe(202);
    const seen = (await upstream.sees("cancelled", cancels + 2)).slice(cancels);
    const ids = (await upstream.seen("hang")).slice(hangs).map((hang) => hang["id"]);
    expect(seen.map((one) => [one["requestId"], one["reason"]])).toEqual([
      [ids[1], "caller_asked"],
      [ids[0], "caller_asked"],
    ]);
  });

  test("a reader that stands still holds back its own call only, and gets everything in the end", async () => {
    const bytes = 12 * 1024 * 1024;
    const slow = await postTool(stack, "size", { bytes });
    for (const n of [1, 2, 3]) {
      expect(await answerOf(await postTool(stack, "echo", { n }))).toMatchObject({ result: { resultType: "complete" } });
    }
    const answer = await answerOf(slow);
    expect((answer["result"] as { content: { text: string }[] }).content[0]?.text).toHaveLength(bytes);
  });
});
