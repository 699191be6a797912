/** How programs are started: their environment, and commands on Windows. */
import { describe, expect, test } from "vitest";
import { childEnvironment, desktopEnvironment } from "../../src/agent/upstreams/environment.ts";
import { CommandError, quoteForBatch, windowsPlan } from "../../src/agent/upstreams/windows-command.ts";

describe("a child's environment", () => {
  const own = {
    PATH: "/bin",
    HOME: "/home/me",
    AWS_SECRET: "x",
    LONGLINE_DEVICE_KEY: "llk",
    BASH_FUNC: "() { :; }",
    TERM: "() { :; }",
    DISPLAY: ":0",
  };

  test("is the allow-list and what is configured; never a LONGLINE_ variable, in any case, nor an exported function", () => {
    const env = childEnvironment(own, { TOKEN: "t", LONGLINE_ROOT_KEY: "k", longline_device_key: "k" }, "linux");
    expect(env).toEqual({ PATH: "/bin", HOME: "/home/me", TOKEN: "t" });
  });

  test("reaches the desktop only for the tools that show or read it", () => {
    expect(desktopEnvironment(own, "linux")).toEqual({ PATH: "/bin", HOME: "/home/me", DISPLAY: ":0" });
  });

  test("on Windows is found in any case, and a configured name replaces the same name", () => {
    const windows = { Path: "C:\\bin", SystemRoot: "C:\\Windows", Longline_Device_Key: "k", SECRET: "s" };
    expect(childEnvironment(windows, { path: "C:\\mine", LongLine_X: "k" }, "win32")).toEqual({
      PATH: "C:\\mine",
      SYSTEMROOT: "C:\\Windows",
    });
  });

  test("on Android has what Termux programs need", () => {
    const env = childEnvironment({ PREFIX: "/data/data/com.termux/files/usr", LD_PRELOAD: "libtermux-exec.so" }, {}, "android");
    expect(Object.keys(env)).toEqual(["PREFIX", "LD_PRELOAD"]);
    expect(childEnvironment({ LD_PRELOAD: "x.so" }, {}, "linux")).toEqual({});
  });
});

describe("B50: a command on Windows", () => {
  const files = new Set([
    "C:\\node\\npx.cmd",
    "C:\\node\\node.exe",
    "C:\\node\\npx",
    "C:\\tools\\uvx.exe",
    "C:\\work\\run.bat",
    "C:\\work\\evil.exe",
  ]);
  const host = {
    env: { Path: '"C:\\node";C:\\tools;.;;relative', PATHEXT: ".COM;.EXE;.BAT;.CMD", ComSpec: "C:\\Windows\\System32\\cmd.exe" },
    cwd: "C:\\work",
    isFile: (path: string) => files.has(path),
  };

  test("is found through PATH and PATHEXT, a program before anything without an extension", () => {
    expect(windowsPlan("uvx", ["a b"], host)).toEqual({ file: "C:\\tools\\uvx.exe", args: ["a b"], isVerbatim: false });
    expect(windowsPlan("node.exe", [], host).file).toBe("C:\\node\\node.exe");
  });

  test("is never looked for in the current directory", () => {
    expect(() => windowsPlan("evil", [], host)).toThrow(new CommandError('The command "evil" was not found.'));
    expect(windowsPlan(".\\evil", [], host).file).toBe("C:\\work\\evil.exe");
  });

  test("that is a batch file goes to cmd.exe as one line, whose outermost quotes /s takes off", () => {
    expect(windowsPlan("npx", ["-y", "a b"], host)).toEqual({
      file: "C:\\Windows\\System32\\cmd.exe",
      args: ["/d", "/e:on", "/v:off", "/s", "/c", '""C:\\node\\npx.cmd" "-y" "a b""'],
      isVerbatim: true,
    });
    expect(windowsPlan("./run", [], host).args.at(-1)).toBe('""C:\\work\\run.bat""');
  });

  test.each([
    ["a & b | c > d", '"a & b | c > d"'],
    ['say "hi" & calc', '"say ""hi"" & calc"'],
    ["%PATH%", '"%%cd:~,%PATH%%cd:~,%"'],
    ["ends\\", '"ends\\\\"'],
    ['back\\"quote', '"back\\\\""quote"'],
    ["", '""'],
    ["caret^ bang!", '"caret^ bang!"'],
  ])("gives a batch file %j literally", (arg, quoted) => {
    expect(quoteForBatch(arg)).toBe(quoted);
  });

  test("refuses what no quoting can carry to a batch file", () => {
    expect(() => quoteForBatch("one\r\ntwo")).toThrow(CommandError);
  });
});
