import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Backoff } from "../../src/agent/backoff.ts";
import { catalogueText } from "../../src/agent/catalogue.ts";
import { cleanTail, cleanText, redact } from "../../src/agent/clean-text.ts";
import { Inbox } from "../../src/agent/inbox.ts";
import { openInstallation } from "../../src/agent/installation.ts";
import { Journal } from "../../src/agent/journal.ts";
import { childEnvironment } from "../../src/agent/upstreams/environment.ts";
import { headerValue, paramHeaders, rulesByTool } from "../../src/agent/upstreams/http-headers.ts";
import { InFlight, inputCapabilities, Turns, type Running } from "../../src/agent/upstreams/in-flight.ts";
import { buildParams, checkParams, ParamsError } from "../../src/agent/upstreams/params.ts";
import { instanceKey } from "../../src/agent/upstreams/pool.ts";
import { AGENT, BACKOFF, CALL, CATALOGUE, EDGE, JOURNAL } from "../../src/limits.ts";
import { newCallId } from "../../src/tunnel/frames.ts";
import { callFrame, legacyClient } from "../support/fake-relay.ts";
import { stateDir } from "./harness.ts";

const running = (capabilities: Record<string, unknown>, extra: { logLevel?: string; method?: string } = {}): Running => {
  const { client } = callFrame({ method: "tools/call", client: legacyClient(capabilities) });
  const method = extra.method ?? "tools/call";
  const call = {
    method,
    target: "t",
    params: checkParams({ method, target: "t" }, "{}"),
    grant: "g",
    client,
    meta: undefined,
    progress: false,
    logLevel: extra.logLevel,
    paramHeaders: undefined,
    names: undefined,
  };
  return { call, sink: { begun: () => undefined, event: () => undefined, ask: () => Promise.resolve({ kind: "cancelled" }) } };
};

const lists = (name: string) => ({
  discover: { capabilities: { tools: {} }, serverInfo: { name, version: "1" }, instructions: name },
  tools: [`{"name":"${name}"}`, '{"name":"same","n":1.0}'],
  resources: [],
  resourceTemplates: [],
  prompts: [],
});

describe("params", () => {
  test.each([
    ["tools/call", { target: "t" }, '{"name":"other"}'],
    ["tools/call", { target: "t" }, String.raw`{"n\u0061me":"other"}`],
    ["tools/call", { target: "t" }, '{"_meta":{}}'],
    ["tools/call", { target: "t" }, '{"uri":"x"}'],
    ["resources/read", { target: "u" }, '{"uri":"x"}'],
    ["completion/complete", { ref: { type: "ref/prompt", name: "p" } }, '{"ref":{}}'],
    ["tools/list", {}, '{"name":"x"}'],
    ["tools/call", {}, "{}"],
    ["tools/list", { target: "t" }, "{}"],
    ["completion/complete", { target: "t" }, "{}"],
    ["tools/call", { target: "t" }, "[]"],
    ["tools/call", { target: "t" }, '{"a":1} {}'],
  ] as const)("%s %j refuses the payload %s", (method, header, payload) => {
    expect(() => checkParams({ method, ...header }, payload)).toThrow(ParamsError);
  });

  test("runs the header's target with the payload's bytes on one line", () => {
    const params = checkParams({ method: "tools/call", target: 'a"b' }, '{\n "arguments" : {"n":12345678901234567890},\r\n"x":"\\u00e9"}');
    expect(buildParams(params, { progressToken: "p" }, ['"requestState":"s"'])).toBe(
      String.raw`{"name":"a\"b","arguments" : {"n":12345678901234567890},  "x":"\u00e9","requestState":"s","_meta":{"progressToken":"p"}}`,
    );
    expect(buildParams(checkParams({ method: "tools/list" }, ""), {})).toBe("{}");
  });
});

describe("clean text", () => {
  test("removes ANSI, control and bidirectional characters and bounds the length", () => {
    expect(cleanText("\u001b[31mred\u001b[0m\u0007 \u202etxt\u2066 \u001b]0;title\u0007end\r\n\nnext")).toBe("red txt end | next");
    expect(cleanText("x".repeat(50), 10)).toBe(`${"x".repeat(9)}…`);
    expect(cleanTail("first\nlast", 5)).toBe("…last");
    expect(redact("key=supersecret a", ["supersecret", "a"])).toBe("key=[secret] a");
  });
});

describe("backoff", () => {
  test("grows to its cap with full jitter, never ends, and starts again after a stable link", () => {
    const backoff = new Backoff(() => 1);
    expect([1, 2, 3, 4, 5, 6, 7, 8].map(() => backoff.next())).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    for (let i = 0; i < 10_000; i += 1) backoff.next();
    expect(backoff.next()).toBe(BACKOFF.capMs);
    backoff.lasted(BACKOFF.stableMs - 1);
    expect(backoff.next()).toBe(BACKOFF.capMs);
    backoff.lasted(BACKOFF.stableMs);
    expect(backoff.next()).toBe(BACKOFF.baseMs);
    expect(new Backoff(() => 0).next()).toBe(BACKOFF.baseMs);
  });

  test("redials within a second once, then backs off", () => {
    const backoff = new Backoff(() => 1);
    expect(backoff.redial()).toBe(BACKOFF.redialMs);
    expect([backoff.redial(), backoff.redial(), backoff.redial()]).toEqual([1000, 2000, 4000]);
  });
});

describe("the journal", () => {
  test("is read by the next process: what had begun is known, and bounded in time", () => {
    const dir = stateDir();
    let now = 1_000_000;
    const first = new Journal(dir, () => now, "boot");
    const [ended, begun] = [newCallId(), newCallId()];
    first.begin(ended);
    first.end(ended);
    first.begin(begun);
    expect(first.get(begun)).toMatchObject({ isEnded: false, isEarlier: false });
    // No close: the process was killed.
    const second = new Journal(dir, () => now, "boot");
    expect(second.get(begun)).toMatchObject({ isEnded: false, isEarlier: true });
    expect(second.get(ended)).toMatchObject({ isEnded: true, isEarlier: true });
    expect(second.get(newCallId())).toBeUndefined();
    expect(second.isComplete).toBe(true);
    expect(new Journal(dir, () => now, "other boot").isComplete).toBe(false);
    // One that has not ended may still run, or be asked for, after ten minutes; one that has may not.
    now += JOURNAL.keepMs + 1;
    const later = new Journal(dir, () => now, "other boot");
    expect(later.get(begun)).toMatchObject({ isEnded: false, isEarlier: true });
    expect(later.get(ended)).toBeUndefined();
    now += JOURNAL.begunMs;
    expect(new Journal(dir, () => now, "other boot").get(begun)).toBeUndefined();
  });

  test("never forgets a call that runs because of many short ones, and the next process knows what was lost", () => {
    const dir = stateDir();
    let now = 1_000_000;
    const first = new Journal(dir, () => now, "boot");
    const [long, early] = [newCallId(), newCallId()];
    first.begin(long);
    first.begin(early);
    first.end(early);
    for (let i = 0; i < JOURNAL.entries * 8; i += 1) {
      const id = newCallId();
      first.begin(id);
      first.end(id);
    }
    expect(first.get(long)).toMatchObject({ isEnded: false });
    expect(first.get(early)).toBeUndefined();
    // Killed, and started again: what was pushed out is in no file any more, so nothing may be claimed of it.
    const second = new Journal(dir, () => now, "boot");
    expect(second.get(long)).toMatchObject({ isEnded: false, isEarlier: true });
    expect(second.get(early)).toBeUndefined();
    expect(second.isComplete).toBe(false);
    expect(new Journal(dir, () => now, "boot").isComplete).toBe(false);
    now += JOURNAL.keepMs + 1;
    expect(second.isComplete).toBe(true);
    expect(new Journal(dir, () => now, "boot").isComplete).toBe(true);
  });

  test("knows after a power cut that lines may be missing, also in the process after the next", () => {
    const dir = stateDir();
    new Journal(dir, Date.now, "boot 1").begin(newCallId());
    expect(new Journal(dir, Date.now, "boot 2").isComplete).toBe(false);
    expect(new Journal(dir, Date.now, "boot 2").isComplete).toBe(false);
  });

  test("survives garbage, stays bounded, and says when an id was pushed out", () => {
    const dir = stateDir();
    writeFileSync(join(dir, "journal"), `longline-journal 1 boot\nb ${newCallId()} 12\nb c_short 1\n\0\0binary`);
    const journal = new Journal(dir, Date.now, "boot");
    expect(journal.isComplete).toBe(true);
    const first = newCallId();
    journal.begin(first);
    journal.end(first);
    for (let i = 0; i < JOURNAL.entries * 8; i += 1) {
      const id = newCallId();
      journal.begin(id);
      journal.end(id);
    }
    expect(journal.get(first)).toBeUndefined();
    expect(journal.isComplete).toBe(false);
    expect(readFileSync(join(dir, "journal"), "utf8").split("\n").length).toBeLessThan(JOURNAL.entries * 7);
    expect(statSync(join(dir, "journal")).mode & 0o777).toBe(0o600);
  });
});

test("the installation id stays, in a directory for its owner only", () => {
  const dir = join(stateDir(), "state");
  mkdirSync(dir, { mode: 0o755 });
  const id = openInstallation(dir);
  expect(openInstallation(dir)).toBe(id);
  expect(statSync(dir).mode & 0o777).toBe(0o700);
  expect(openInstallation(join(stateDir(), "deep", "er"))).not.toBe(id);
});

test("a child's environment is an allow-list without our own variables", () => {
  const own = { PATH: "/bin", HOME: "/h", LONGLINE_DEVICE_KEY: "llk_x", AWS_SECRET: "s", SHELL: "() { :; }" };
  expect(childEnvironment(own, { API_KEY: "k", LONGLINE_X: "y" })).toEqual({ PATH: "/bin", HOME: "/h", API_KEY: "k" });
});

describe("whose a message is", () => {
  test("a server request belongs to the one call whose client declared it, else to none", () => {
    const calls = new InFlight();
    expect(calls.ownerOfRequest("elicitation/create")).toBeUndefined();
    const asking = running({ elicitation: {} });
    calls.add(asking);
    calls.add(running({}));
    calls.add(running({ elicitation: {} }, { method: "prompts/get" }));
    expect(calls.ownerOfRequest("elicitation/create")).toBeUndefined();
    expect(calls.ownerOfRequest("sampling/createMessage")).toBeUndefined();
    const alone = new InFlight();
    alone.add(asking);
    alone.add(running({}));
    expect(alone.ownerOfRequest("elicitation/create")).toBe(asking);
  });

  test("a log goes to a call that asked for its level, and never to another grant's", () => {
    const asked = running({}, { logLevel: "warning" });
    const calls = new InFlight();
    calls.add(asked);
    expect(calls.ownerOfLog("info", "legacy", "many_grants")).toBeUndefined();
    expect(calls.ownerOfLog("error", "legacy", "many_grants")).toBe(asked);
    calls.add(running({}));
    expect(calls.ownerOfLog("error", "legacy", "many_grants")).toBeUndefined();
    expect(calls.ownerOfLog("error", "legacy", "one_grant")).toBe(asked);
    expect(calls.ownerOfLog("error", "modern", "many_grants")).toBe(asked);
  });

  test("turns are given in order, and one that is given up does not block the next", async () => {
    const turns = new Turns();
    const never = new AbortController().signal;
    const gone = new AbortController();
    const release = await turns.take(never);
    const second = turns.take(gone.signal);
    const third = turns.take(never);
    gone.abort();
    expect(await second).toBeNull();
    release?.();
    expect(await third).toBeTypeOf("function");
    expect(await turns.take(gone.signal)).toBeNull();
  });

  test("instances are told apart by grant and capabilities, not by the order of members", () => {
    expect(instanceKey("g", { a: 1, b: { c: 1, d: 2 } })).toBe(instanceKey("g", { b: { d: 2, c: 1 }, a: 1 }));
    expect(instanceKey("g", { a: 1 })).not.toBe(instanceKey("h", { a: 1 }));
    expect(instanceKey("g", {})).not.toBe(instanceKey("g", { a: 1 }));
    expect(inputCapabilities({ elicitation: { url: {} }, roots: { listChanged: true }, tasks: {}, sampling: null })).toEqual({
      elicitation: { url: {} },
      roots: {},
    });
  });
});

describe("mirrored headers", () => {
  test.each([
    ["attic", "attic"],
    ["a b", "a b"],
    ["", ""],
    ["zürich", "=?base64?esO8cmljaA==?="],
    [" left pad", "=?base64?IGxlZnQgcGFk?="],
    ["=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="],
    ["line\nbreak", "=?base64?bGluZQpicmVhaw==?="],
  ])("%j is sent as %j", (value, sent) => {
    expect(headerValue(value)).toBe(sent);
  });

  test("are made from the arguments, as the tool's schema says", () => {
    const tool = {
      name: "t",
      inputSchema: {
        type: "object",
        properties: { room: { type: "string", "x-mcp-header": "Room" }, on: { type: "boolean", "x-mcp-header": "On" } },
      },
    };
    const rules = rulesByTool([JSON.stringify(tool), '{"name":"plain"}']);
    expect([...rules.keys()]).toEqual(["t"]);
    expect(paramHeaders(rules.get("t") ?? [], { room: "zürich", on: false })).toEqual({ room: "=?base64?esO8cmljaA==?=", on: "false" });
    expect(paramHeaders(rules.get("t") ?? [], { room: null })).toEqual({});
    expect(paramHeaders(rules.get("t") ?? [], undefined)).toEqual({});
  });
});

describe("the catalogue", () => {
  test("stays within its bounds and says what is left out", () => {
    const many = {
      ...lists("a"),
      tools: Array.from({ length: CATALOGUE.maxTools + 5 }, (_, i) => `{"name":"t${i}"}`),
      resources: [`{"uri":"${"x".repeat(CATALOGUE.maxBytes)}"}`],
    };
    const most = { ...lists("a"), tools: many.tools.slice(0, CATALOGUE.maxTools) };
    expect(catalogueText(most)).toMatchObject({ tools: CATALOGUE.maxTools, left: 0 });
    const { text, left } = catalogueText(many);
    expect(left).toBe(6);
    const value = JSON.parse(text) as { tools: unknown[]; resources: unknown[] };
    expect(value.tools).toHaveLength(CATALOGUE.maxTools);
    expect(value.resources).toEqual([]);
    expect(catalogueText(many).digest).toBe(catalogueText(many).digest);
    expect(catalogueText(lists("b")).digest).not.toBe(catalogueText(lists("a")).digest);
  });
});

describe("the inbox", () => {
  test("puts chunks together in order only, within its bounds", () => {
    const inbox = new Inbox();
    const frame = callFrame({ method: "tools/list", bytes: 5 });
    expect(inbox.open(frame, 5)).toEqual({ credit: 5, offset: 0 });
    expect(inbox.chunk(frame.callId, 0, Buffer.from("abc"))).toEqual({ kind: "more", credit: 0 });
    expect(inbox.chunk(frame.callId, 3, Buffer.from("de"))).toMatchObject({ kind: "whole", payload: Buffer.from("abcde") });
    expect(inbox.chunk(frame.callId, 5, Buffer.from("f"))).toBeNull();
    for (const [offset, piece] of [
      [1, "a"],
      [0, ""],
      [0, "abcdef"],
    ] as const) {
      inbox.open(frame, 5);
      expect(inbox.chunk(frame.callId, offset, Buffer.from(piece))).toMatchObject({ kind: "broken" });
    }
    expect(inbox.open(callFrame({ method: "x", bytes: EDGE.maxRequestBytes + 1 }), EDGE.maxRequestBytes + 1).credit).toBe(0);
    const opened = Array.from(
      { length: 5 },
      () => inbox.open(callFrame({ method: "x", bytes: EDGE.maxRequestBytes }), EDGE.maxRequestBytes).credit,
    );
    const { requestWindowBytes: window } = AGENT;
    expect(opened).toEqual([window, window, window, window, 0]);
  });

  test("keeps what is half there for the next link, for as long as somebody may come back with the rest", () => {
    const inbox = new Inbox();
    const frame = callFrame({ method: "x", bytes: 6 });
    inbox.open(frame, 6);
    inbox.chunk(frame.callId, 0, Buffer.from("abc"));
    inbox.lost(0);
    expect(inbox.chunk(frame.callId, 3, Buffer.from("def"))).toBeNull();
    inbox.sweep(CALL.attachWindowMs);
    expect(inbox.open(frame, 6)).toEqual({ credit: 3, offset: 3 });
    expect(inbox.chunk(frame.callId, 3, Buffer.from("def"))).toMatchObject({ kind: "whole", payload: Buffer.from("abcdef") });
    inbox.open(frame, 6);
    inbox.chunk(frame.callId, 0, Buffer.from("abc"));
    inbox.lost(0);
    inbox.sweep(CALL.attachWindowMs + 1);
    expect(inbox.open(frame, 6)).toEqual({ credit: 6, offset: 0 });
  });

  test("gives credit in windows: never more on the way, and all of it in the end", () => {
    const inbox = new Inbox();
    const size = 3 * AGENT.requestWindowBytes + 17;
    const frame = callFrame({ method: "x", bytes: size });
    let granted = inbox.open(frame, size).credit;
    const piece = Buffer.alloc(10_000);
    for (let at = 0; at < size; at += piece.length) {
      expect(granted - at).toBeLessThanOrEqual(AGENT.requestWindowBytes);
      expect(granted).toBeGreaterThanOrEqual(Math.min(size, at + piece.length));
      const arrival = inbox.chunk(frame.callId, at, piece.subarray(0, size - at));
      if (arrival?.kind === "more") granted += arrival.credit;
    }
    expect(granted).toBe(size);
  });
});
