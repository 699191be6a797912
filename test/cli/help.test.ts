/** Every command explains itself: an example, and options that exist. */
import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { buildProgram } from "../../src/cli/program.ts";
import { command } from "./support.ts";

const silent = { env: {}, cwd: "/", columns: undefined, hasColor: false, out: () => undefined, err: () => undefined };
const program = buildProgram(silent);

/** Each command that does something, with its words. */
function leaves(at: Command, path: string[]): [string, Command][] {
  if (at.commands.length === 0) return [[path.join(" "), at]];
  const children = at.commands.flatMap((child) => leaves(child, [...path, child.name()]));
  // `agent` does something by itself as well.
  return at.registeredArguments.length > 0 ? [...children, [path.join(" "), at]] : children;
}

test("the commands of the command line are these", () => {
  expect(leaves(program, []).map(([path]) => path)).toEqual([
    "serve",
    "agent install",
    "agent uninstall",
    "agent",
    "connect",
    "device add",
    "device list",
    "device set",
    "device approve",
    "device pause",
    "device resume",
    "device rename",
    "device rotate-key",
    "device revoke-key",
    "device remove",
    "token create",
    "token list",
    "token update",
    "token pause",
    "token resume",
    "token revoke",
    "invite create",
    "invite list",
    "invite revoke",
    "member list",
    "member remove",
    "owner link",
    "owner token create",
    "owner token list",
    "owner token revoke",
    "owner recover",
    "origin add",
    "origin list",
    "origin remove",
    "keys rotate",
    "audit retention",
    "status",
    "deploy",
    "destroy",
    "doctor",
    "start",
  ]);
});

describe.each(leaves(program, []))("%s", (path, leaf) => {
  test("--help exits with 0 on stdout, lists every option, and shows an example", async () => {
    const { code, out, err } = await command([...path.split(" "), "--help"]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    for (const option of leaf.options) expect(out).toContain(option.flags);
    expect(out).toMatch(/Examples?:\n {2}(?:LONGLINE_DEVICE_KEY=… )?longline/);
  });

  test("its example uses options that exist", async () => {
    const { out } = await command([...path.split(" "), "--help"]);
    const lines = out
      .slice(out.search(/Examples?:/))
      .split("\n")
      .slice(1);
    for (const line of lines) {
      const words = (line.split(" longline ").at(-1) ?? line).replace(/^\s*longline /, "").split(/\s+/);
      const [own] = [words.includes("--") ? words.slice(0, words.indexOf("--")) : words];
      const used = (own ?? []).filter((word) => word.startsWith("--"));
      const target = leaves(program, []).find(([name]) => words.join(" ").startsWith(name));
      const known = target?.[1].options.map((option) => option.long) ?? [];
      for (const option of used) expect(known).toContain(option);
    }
  });

  test("--json exists, except where standard output is a protocol", () => {
    expect(leaf.options.some((option) => option.long === "--json")).toBe(path !== "connect");
  });
});

test("--version prints the package's version", async () => {
  const { version } = (await import("../../package.json", { with: { type: "json" } })).default;
  expect(await command(["--version"])).toEqual({ code: 0, out: version, err: "" });
});
