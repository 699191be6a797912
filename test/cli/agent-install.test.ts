/** The service of `longline agent install`: what is written for each system, and that no secret gets into it. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { quoteArgument, windowsTask } from "../../src/cli/install/windows-task.ts";
import { launchd } from "../../src/cli/install/launchd.ts";
import { systemd } from "../../src/cli/install/systemd.ts";
import { termux } from "../../src/cli/install/termux.ts";
import { temporaryDir } from "../support/processes.ts";
import { command } from "./support.ts";

const KEY = `llk_${"0123456789abcdef".repeat(2)}_${"A".repeat(43)}`;
const VERIFY = "/usr/bin/systemd-analyze";
/** Everything that a quoting mistake would break. */
const NASTY = ["/opt/some where/node", "agent", `a"b`, String.raw`c\d`, "%h", "$HOME", "${X}", "it's", "<&>", "ü", ""];
const PLAN = {
  name: "longline-agent",
  description: "Longline agent for 100% relay",
  argv: NASTY,
  cwd: "/",
  env: { PATH: "/usr/bin:/x y%z" },
};

let dir: Awaited<ReturnType<typeof temporaryDir>>;
let env: Record<string, string>;
beforeEach(async () => {
  dir = await temporaryDir();
  env = { HOME: dir.path, XDG_CONFIG_HOME: join(dir.path, "config"), XDG_STATE_HOME: join(dir.path, "state"), PATH: "/usr/bin:/bin" };
  await writeFile(join(dir.path, "key"), KEY, { mode: 0o600 });
});
afterEach(() => dir.remove());

const install = async (args: readonly string[], more: Record<string, string> = {}) =>
  await command(["agent", "install", "--relay", "https://relay.example", "--no-start", ...args], {
    cwd: dir.path,
    env: { ...env, ...more },
  });
const unitPath = (): string => join(dir.path, "config/systemd/user/longline-agent.service");

describe("on systemd", () => {
  test("the unit runs the same agent with absolute paths, is shown, and holds no key", async () => {
    const { code, err } = await install([
      "--yes",
      "--system",
      "systemd",
      "--key-file",
      "key",
      "--state",
      "s",
      "--",
      "npx",
      "-y",
      "some server",
    ]);
    expect({ code, err }).toMatchObject({ code: 0 });
    const unit = await readFile(unitPath(), "utf8");
    expect(unit).toContain(`"agent" "--relay" "https://relay.example" "--key-file" "${dir.path}/key" "--state" "${dir.path}/s"`);
    expect(unit).toContain(`"--" "npx" "-y" "some server"`);
    for (const line of unit.trimEnd().split("\n")) expect(err).toContain(line);
    expect(unit + err).not.toContain(KEY);
  });

  test("a key of the environment is kept in a private file, which the unit names", async () => {
    const { code } = await install(["--yes", "--system", "systemd", "--demo"], { LONGLINE_DEVICE_KEY: KEY });
    expect(code).toBe(0);
    const unit = await readFile(unitPath(), "utf8");
    const [, path = ""] = /"--key-file" "([^"]+)"/.exec(unit) ?? [];
    expect((await readFile(path, "utf8")).trim()).toBe(KEY);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(unit).not.toContain("llk_");
  });

  test("nothing is written when nobody agreed, without a key, or with a password in a proxy's address", async () => {
    const unasked = await install(["--system", "systemd", "--key-file", "key", "--demo"]);
    expect(unasked).toMatchObject({ code: 2, err: expect.stringContaining("--yes") });
    const keyless = await install(["--yes", "--system", "systemd", "--demo"]);
    expect(keyless).toMatchObject({ code: 3, err: expect.stringContaining("pair") });
    const proxy = { HTTPS_PROXY: "http://ada:hunter2@proxy.example:3128" };
    const secret = await install(["--yes", "--system", "systemd", "--key-file", "key", "--demo"], proxy);
    expect(secret.code).toBe(2);
    expect(secret.err).not.toContain("hunter2");
    expect(existsSync(unitPath())).toBe(false);
  });

  test("uninstall removes the unit and leaves the key", async () => {
    await install(["--yes", "--system", "systemd", "--key-file", "key", "--demo"]);
    const removed = await command(["agent", "uninstall", "--yes", "--system", "systemd", "--json"], { env });
    expect(removed.code).toBe(0);
    expect(JSON.parse(removed.out)).toEqual({ service: "longline-agent", path: unitPath(), removed: true });
    expect(existsSync(unitPath())).toBe(false);
    expect(existsSync(join(dir.path, "key"))).toBe(true);
    expect((await command(["agent", "uninstall", "--yes"], { env })).code).toBe(4);
  });

  test("systemd itself finds nothing wrong with it", async () => {
    if (!existsSync(VERIFY)) throw new Error(`${VERIFY} is missing: install systemd to have the unit verified.`);
    await mkdir(join(dir.path, "some where"));
    const node = join(dir.path, "some where", "node");
    await writeFile(node, "#!/bin/sh\n", { mode: 0o755 });
    const path = join(dir.path, "longline-agent.service");
    await writeFile(path, systemd(dir.path).render({ ...PLAN, argv: [node, ...NASTY.slice(1)] }));
    const { status, stderr } = spawnSync(VERIFY, ["--user", "verify", path], {
      encoding: "utf8",
      env: { ...env, XDG_RUNTIME_DIR: dir.path },
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  test("what systemd expands is escaped", () => {
    const unit = systemd("/c").render(PLAN);
    for (const word of ['"a\\"b"', '"c\\\\d"', '"%%h"', '"$$HOME"', '"$${X}"', '""']) expect(unit).toContain(word);
    expect(unit).toContain(`Environment="PATH=/usr/bin:/x y%%z"`);
  });
});

test("the agent itself still takes its command after --", async () => {
  const { code, err } = await command(["agent", "--relay", "http://127.0.0.1:1", "--upstream", "http://127.0.0.1:2/mcp", "--", "npx"], {
    env,
  });
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining("exactly one of them") });
});

test("on macOS the plist holds the words as they are, and says that it was never tried", async () => {
  const plist = launchd("/Users/ada", 501).render(PLAN);
  expect(plist).toContain("<string>&lt;&amp;&gt;</string>");
  expect(plist).toContain("<string>$HOME</string>");
  const { err } = await install(["--yes", "--system", "launchd", "--key-file", "key", "--demo"]);
  expect(err).toContain("never tried on a real machine");
  expect(existsSync(join(dir.path, "Library/LaunchAgents/dev.longline.longline-agent.plist"))).toBe(true);
});

test("on Windows the task starts at logon, with arguments quoted as programs there read them", () => {
  const task = windowsTask("C:\\Users\\ada\\AppData\\Local").render({
    ...PLAN,
    argv: ["C:\\Program Files\\node.exe", "a b", `say "hi"`, "end\\"],
  });
  expect(task.startsWith("\uFEFF<?xml")).toBe(true);
  expect(task).toContain("&quot;C:\\Program Files\\node.exe&quot; &quot;a b&quot; &quot;say \\&quot;hi\\&quot;&quot; end\\");
  expect(quoteArgument("")).toBe('""');
  expect(quoteArgument("a b\\")).toBe('"a b\\\\"');
});

test("on a phone the boot script is one that sh runs word for word", async () => {
  const script = termux(dir.path).render({
    ...PLAN,
    cwd: dir.path,
    argv: ["/bin/sh", "-c", 'printf "%s|" "$@"; exit 2', "x", ...NASTY.slice(2)],
  });
  await writeFile(join(dir.path, "boot"), script.replace("termux-wake-lock\n", ""));
  const run = (): string => execFileSync("/bin/sh", [join(dir.path, "boot")], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  let said = "";
  try {
    said = run();
  } catch (error) {
    said = (error as { stdout: string }).stdout;
  }
  expect(said).toBe(`${NASTY.slice(2).join("|")}|`);
});
