/** Which programs the built-in tools use on which machine, and what they say where nothing fits. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ToolsSection } from "../../src/agent/config/tools-section.ts";
import { batterySource, fromSysfs, parseCim, parsePmset, parseTermux } from "../../src/agent/tools/battery.ts";
import { builtinAvailability, builtinTools } from "../../src/agent/tools/builtin-tools.ts";
import { FILE, findCapture } from "../../src/agent/tools/capture.ts";
import { findClipboard } from "../../src/agent/tools/clipboard.ts";
import type { ToolHost } from "../../src/agent/tools/find-program.ts";
import { findOpener, webAddress } from "../../src/agent/tools/open-url.ts";
import { powershellArgs, powershellText } from "../../src/agent/tools/powershell.ts";
import { commandLine } from "../../src/agent/tools/shell.ts";

function host(platform: NodeJS.Platform, env: Record<string, string>, ...programs: string[]): ToolHost {
  return { platform, env, has: (program) => programs.includes(program) };
}

const x11 = { DISPLAY: ":0" };
const wayland = { DISPLAY: ":0", WAYLAND_DISPLAY: "wayland-0" };

function scriptOf(args: readonly string[]): string {
  return Buffer.from(args.at(-1) ?? "", "base64").toString("utf16le");
}

describe("the screen is captured", () => {
  test.each([
    ["maim", ["xwd", "scrot", "maim"]],
    ["scrot", ["xwd", "scrot"]],
    ["import", ["xwd", "import"]],
    ["xwd", ["ffmpeg", "xwd"]],
    ["ffmpeg", ["ffmpeg"]],
  ])("on X11 by %s when there is %j", (command, programs) => {
    expect(findCapture(host("linux", x11, ...programs))).toMatchObject({ ok: true, use: { command } });
  });

  test("on Wayland never by an X11 program, which sees no windows there", () => {
    expect(findCapture(host("linux", wayland, "maim", "grim"))).toMatchObject({ ok: true, use: { command: "grim" } });
    expect(findCapture(host("linux", wayland, "gnome-screenshot"))).toMatchObject({ use: { output: "file", args: [`--file=${FILE}`] } });
    expect(findCapture(host("linux", wayland, "maim"))).toMatchObject({ ok: false, advice: "install grim, gnome-screenshot or spectacle" });
  });

  test("on macOS by screencapture, on Windows by a script", () => {
    expect(findCapture(host("darwin", {}))).toEqual({
      ok: true,
      use: { command: "screencapture", args: ["-x", "-t", "png", FILE], output: "file" },
    });
    const windows = findCapture(host("win32", {}));
    expect(windows).toMatchObject({ ok: true, use: { command: "powershell.exe", output: "base64" } });
    expect(windows.ok && scriptOf(windows.use.args)).toContain("CopyFromScreen");
  });

  test("nowhere without a screen, or a program; both say what to do", () => {
    expect(findCapture(host("linux", {}, "maim"))).toMatchObject({ ok: false, reason: "there is no screen: DISPLAY is not set" });
    expect(findCapture(host("linux", x11))).toMatchObject({ ok: false, advice: expect.stringContaining("install maim") as string });
  });
});

describe("the clipboard", () => {
  test.each([
    ["linux", wayland, "wl-paste", ["wl-paste", "xclip"]],
    ["linux", x11, "xclip", ["wl-paste", "xclip", "xsel"]],
    ["linux", x11, "xsel", ["xsel"]],
    ["android", {}, "termux-clipboard-get", ["termux-clipboard-get"]],
    ["darwin", {}, "pbpaste", []],
    ["win32", {}, "powershell.exe", []],
  ] as const)("on %s with %j is read by %s", (platform, env, command, programs) => {
    expect(findClipboard(host(platform, env, ...programs))).toMatchObject({ ok: true, use: { get: { command } } });
  });

  test("is missing with a reason", () => {
    expect(findClipboard(host("linux", {}, "xclip"))).toMatchObject({ ok: false, reason: "there is no desktop" });
    expect(findClipboard(host("linux", x11))).toMatchObject({ ok: false, advice: "install xclip, xsel or wl-clipboard" });
  });
});

describe("an address", () => {
  test.each([
    ["linux", x11, "xdg-open", ["xdg-open"]],
    ["android", {}, "termux-open-url", ["termux-open-url"]],
    ["darwin", {}, "open", []],
    ["win32", {}, "rundll32.exe", []],
  ] as const)("is opened on %s with %j by %s", (platform, env, command, programs) => {
    expect(findOpener(host(platform, env, ...programs))).toMatchObject({ ok: true, use: { command } });
  });

  test("is http or https and normalised", () => {
    expect(webAddress("HTTPS://Example.com/a b?c=<d>")).toBe("https://example.com/a%20b?c=%3Cd%3E");
    for (const wrong of ["file:///etc/passwd", "javascript:alert(1)", "--help", "calc.exe", "smb://host/share", ""])
      expect(() => webAddress(wrong), wrong).toThrow("Only http and https addresses are opened.");
  });
});

describe("the battery", () => {
  test("of Linux is the first of the machine itself", async () => {
    const dir = mkdtempSync(join(tmpdir(), "longline-power-"));
    onTestFinished(() => rmSync(dir, { recursive: true }));
    const supply = (name: string, files: Record<string, string>) => {
      mkdirSync(join(dir, name));
      for (const [file, text] of Object.entries(files)) writeFileSync(join(dir, name, file), `${text}\n`);
    };
    supply("AC", { type: "Mains", online: "1" });
    supply("BAT0", { type: "Battery", scope: "Device", capacity: "9", status: "Discharging" });
    supply("BAT1", { type: "Battery", capacity: "73", status: "Full" });
    expect(await fromSysfs(dir)).toEqual({ percent: 73, isPlugged: true });
  });

  test("is read from what macOS, Windows and Termux print", () => {
    expect(parsePmset("Now drawing from 'Battery Power'\n -InternalBattery-0 (id=1)\t95%; discharging; 4:28 remaining\n")).toEqual({
      percent: 95,
      isPlugged: false,
    });
    expect(parsePmset("Now drawing from 'AC Power'\n")).toBeUndefined();
    expect(parseCim('{"EstimatedChargeRemaining":40,"BatteryStatus":1}')).toEqual({ percent: 40, isPlugged: false });
    expect(parseCim("")).toBeUndefined();
    expect(parseTermux('{"percentage":88,"plugged":"PLUGGED_AC"}')).toEqual({ percent: 88, isPlugged: true });
    expect(batterySource(host("darwin", {}))?.helper.command).toBe("pmset");
    expect(batterySource(host("linux", {}))).toBeUndefined();
  });
});

test("PowerShell gets a script without quoting, and texts as literals", () => {
  expect(powershellArgs("a 'b'").slice(0, -1)).toEqual(["-NoLogo", "-NoProfile", "-NonInteractive", "-EncodedCommand"]);
  expect(scriptOf(powershellArgs("a 'b' ü"))).toBe("a 'b' ü");
  expect(powershellText("it's ’here’ $x")).toBe("'it''s ’’here’’ $x'");
});

test("a shell's command line is one argument, on Windows in the quotes that /s takes off", () => {
  expect(commandLine('echo "a b"', "linux")).toEqual({ command: "/bin/sh", args: ["-c", 'echo "a b"'] });
  expect(commandLine("ls", "android").command).toBe("sh");
  expect(commandLine('echo "a b"', "win32")).toMatchObject({ args: ["/d", "/s", "/c", '"echo "a b""'], isVerbatim: true });
});

describe("built-in tools", () => {
  const bare = host("linux", {}, "sh");

  test("are off until they are named, and not listed where they do not work", () => {
    expect(builtinTools(ToolsSection.parse({}), bare).tools).toEqual([]);
    const section = ToolsSection.parse({ shell: {}, screenshot: {}, device_status: {} });
    const { tools, unavailable } = builtinTools(section, bare);
    expect(tools.map((tool) => tool.name)).toEqual(["shell", "device_status"]);
    expect(unavailable).toEqual([
      {
        tool: "screenshot",
        available: false,
        reason: "there is no screen: DISPLAY is not set",
        advice: "start the agent inside the desktop session",
      },
    ]);
  });

  test("say for each whether it works here, and what to do if not", () => {
    const all = builtinAvailability(bare);
    expect(all.map(({ tool, available }) => [tool, available])).toEqual([
      ["shell", true],
      ["screenshot", false],
      ["clipboard", false],
      ["open_url", false],
      ["device_status", true],
      ["support_bundle", true],
    ]);
    for (const { available, reason, advice } of all) if (!available) expect(reason && advice).not.toBe("");
  });

  test("describe their results and what they do", () => {
    const section = ToolsSection.parse(Object.fromEntries(builtinAvailability().map(({ tool }) => [tool, {}])));
    const { tools } = builtinTools(section, host("darwin", {}, "sh"));
    expect(tools.map((tool) => tool.name)).toHaveLength(7);
    for (const tool of tools) {
      expect(tool.inputSchema, tool.name).toMatchObject({ type: "object", additionalProperties: false });
      expect(tool.outputSchema, tool.name).toMatchObject({ type: "object" });
      expect(Object.keys(tool.annotations ?? {})).toEqual(["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]);
    }
  });

  test("take no setting that they do not know, and none beyond its bounds", () => {
    for (const wrong of [
      { shel: {} },
      { shell: { timeout: 5 } },
      { shell: { timeoutSeconds: 0 } },
      { screenshot: { maxSide: 1 } },
      { clipboard: { size: 1 } },
    ])
      expect(ToolsSection.safeParse(wrong).success, JSON.stringify(wrong)).toBe(false);
  });
});
