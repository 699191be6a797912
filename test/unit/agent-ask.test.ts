/** Questions to a person: what is shown, what answers, and that no answer is a no. */
import { PassThrough } from "node:stream";
import { afterEach, describe, expect, test, vi } from "vitest";
import { dialogCommand } from "../../src/agent/ask/dialog-command.ts";
import { QuestionQueue } from "../../src/agent/ask/question-queue.ts";
import { questionLines, type Answer, type Asker, type Question } from "../../src/agent/ask/question.ts";
import { TerminalAsker } from "../../src/agent/ask/terminal-asker.ts";
import { POLICY } from "../../src/limits.ts";

function question(over: Partial<Question> = {}): Question {
  const caller = { grant: "g1", label: "laptop", member: "m1" };
  return { caller, method: "tools/call", target: "shell", argumentsText: '{"command":"ls"}', seconds: 50, word: "apple", ...over };
}

const forever = new AbortController().signal;

/** Hands out its answers by hand, and remembers what it was asked. */
function heldAsker() {
  const asked: { target: string | undefined; signal: AbortSignal; answer: (answer: Answer) => void }[] = [];
  const asker: Asker = {
    ask: ({ target }, signal) => new Promise((answer) => asked.push({ target, signal, answer })),
  };
  return { asker, asked };
}

describe("what is shown", () => {
  test("is caller, tool and arguments as cleaned text", () => {
    const lines = questionLines(
      question({ caller: { grant: "g1", label: "\u001b[2Jlap\u202etop\nfake line", member: "m1" }, target: "she\u0007ll" }),
    );
    expect(lines).toEqual(["laptop | fake line (grant g1, member m1) wants to run the tool shell", 'with {"command":"ls"}']);
  });

  test("shows what would change its looks as escapes, and counts what is left out", () => {
    const [, hidden] = questionLines(question({ argumentsText: JSON.stringify({ command: "a\u202eb\u200bc\u001b[1m😀" }) }));
    expect(hidden).toBe(String.raw`with {"command":"a\u202eb\u200bc\u001b[1m😀"}`);
    const [, long] = questionLines(question({ argumentsText: "x".repeat(POLICY.shownArguments + 7) }));
    expect(long).toMatch(/ … and 7 characters more that are not shown$/);
  });
});

describe("questions", () => {
  afterEach(() => vi.useRealTimers());

  test("are shown one after the other, each with its own time", async () => {
    vi.useFakeTimers();
    const { asker, asked } = heldAsker();
    const queue = new QuestionQueue(asker);
    const first = queue.ask(question({ target: "one" }), forever);
    const second = queue.ask(question({ target: "two" }), forever);
    await vi.advanceTimersByTimeAsync(49_999);
    expect(asked.map((entry) => entry.target)).toEqual(["one"]);
    await vi.advanceTimersByTimeAsync(1);
    expect(await first).toEqual({ kind: "refused", why: "nobody at the device answered within 50 s" });
    expect(asked[0]?.signal.aborted).toBe(true);
    await vi.advanceTimersByTimeAsync(49_999);
    asked[1]?.answer({ kind: "allowed" });
    expect(await second).toEqual({ kind: "allowed" });
  });

  test("go with their call, shown or not", async () => {
    const { asker, asked } = heldAsker();
    const queue = new QuestionQueue(asker);
    const [shown, waiting] = [new AbortController(), new AbortController()];
    const answers = [queue.ask(question(), shown.signal), queue.ask(question({ target: "two" }), waiting.signal)];
    await vi.waitFor(() => expect(asked).toHaveLength(1));
    waiting.abort();
    shown.abort();
    for (const answer of answers) expect(await answer).toEqual({ kind: "refused", why: "the call ended before somebody answered" });
    expect(asked).toHaveLength(1);
  });

  test("that are too many are refused, and one that cannot be shown is a no", async () => {
    const { asker } = heldAsker();
    const queue = new QuestionQueue(asker);
    for (let n = 0; n <= POLICY.waitingQuestions; n += 1) void queue.ask(question(), forever);
    expect(await queue.ask(question(), forever)).toMatchObject({
      kind: "refused",
      why: expect.stringContaining("too many questions") as string,
    });
    const broken = new QuestionQueue({ ask: () => Promise.reject(new Error("no screen")) });
    expect(await broken.ask(question(), forever)).toEqual({ kind: "refused", why: "the question could not be shown at the device" });
  });
});

describe("in a terminal", () => {
  function terminal() {
    const input = new PassThrough();
    const written: string[] = [];
    const commands: string[] = [];
    const asker = new TerminalAsker({
      input,
      write: (line) => written.push(line),
      asking: () => undefined,
      command: (word) => commands.push(word),
    });
    return { input, written, commands, asker };
  }

  test.each([
    ["apple\n", { kind: "allowed" }],
    ["  APPLE \r\n", { kind: "allowed" }],
    ["\n", { kind: "refused", why: "somebody at the device said no" }],
    ["yes\n", { kind: "refused", why: "somebody at the device said no" }],
  ])("%j answers", async (typed, answer) => {
    const { asker, input, written } = terminal();
    const asked = asker.ask(question(), forever);
    expect(written.at(-1)).toBe("Type apple and Enter within 50 s to allow it; anything else refuses it.");
    input.write(typed.slice(0, 2));
    input.write(typed.slice(2));
    expect(await asked).toEqual(answer);
  });

  test("what was typed before a question answers none", async () => {
    const { asker, input } = terminal();
    input.write("apple\n");
    await vi.waitFor(() => expect(input.readableLength).toBe(0));
    const asked = asker.ask(question(), forever);
    input.write("no\n");
    expect(await asked).toMatchObject({ kind: "refused" });
  });

  test("a question is withdrawn with its call, and said to be", async () => {
    const { asker, written } = terminal();
    const call = new AbortController();
    const asked = asker.ask(question(), call.signal);
    call.abort();
    expect(await asked).toMatchObject({ kind: "refused" });
    expect(written.at(-1)).toBe("The question is over; the call is not run.");
  });

  test("stop and resume are words at any time, also while a question is open", async () => {
    const { asker, input, commands } = terminal();
    const asked = asker.ask(question(), forever);
    input.write("stop\nresume\napple\n");
    expect(await asked).toEqual({ kind: "allowed" });
    expect(commands).toEqual(["stop", "resume"]);
  });
});

describe("on a desktop", () => {
  const has =
    (...programs: string[]) =>
    (program: string) =>
      programs.includes(program);
  const text = "run <b>rm</b> & 'x'";

  test("zenity, else kdialog, gets the text without markup", () => {
    const host = { platform: "linux" as const, env: { DISPLAY: ":0" } };
    expect(dialogCommand({ ...host, has: has("zenity", "kdialog") }, text, 50)).toEqual({
      command: "zenity",
      args: ["--entry", "--title=Longline", "--text=run &lt;b&gt;rm&lt;/b&gt; &amp; 'x'", "--timeout=50"],
    });
    expect(dialogCommand({ ...host, has: has("kdialog") }, text, 50)).toMatchObject({ command: "kdialog" });
  });

  test("macOS gets it as an argument, Windows as a literal", () => {
    const mac = dialogCommand({ platform: "darwin", env: {}, has: has() }, text, 50);
    expect(mac).toMatchObject({ command: "osascript", args: expect.arrayContaining([text]) as string[] });
    const windows = dialogCommand({ platform: "win32", env: {}, has: has() }, text, 50);
    const script = "args" in windows ? Buffer.from(windows.args.at(-1) ?? "", "base64").toString("utf16le") : "";
    expect(script).toContain("InputBox('run <b>rm</b> & ''x''', 'Longline', '')");
  });

  test("without a display, or a program, there is a reason", () => {
    expect(dialogCommand({ platform: "linux", env: {}, has: has("zenity") }, text, 50)).toEqual({
      problem: "the agent has no terminal and no desktop to ask on",
    });
    expect(dialogCommand({ platform: "linux", env: { DISPLAY: ":0" }, has: has() }, text, 50)).toMatchObject({
      problem: expect.stringContaining("neither zenity nor kdialog") as string,
    });
  });
});
