/** The agent's configuration file: every mistake at once, with path and line, and never a value. */
import { describe, expect, it } from "vitest";
import { readConfig } from "../../src/agent/config/config-file.ts";
import { ConfigError } from "../../src/agent/config/mistakes.ts";

function linesOf(text: string): readonly string[] {
  try {
    readConfig(text, "f");
  } catch (error) {
    if (error instanceof ConfigError) return error.lines;
    throw error;
  }
  return [];
}

const TOOL =
  'description = "d"\ninputSchema = { type = "object", required = ["a"], properties = { a = { type = "string" }, n = { type = "integer" }, d = { default = 1 } } }';
const tool = (rest: string) => linesOf(`[tools.t]\n${TOOL}\n${rest}`);

describe("a configuration with mistakes", () => {
  it("names all of them, by line and path, in the order of the file", () => {
    const text = [
      "[upstream.files]",
      'command = ["x"]',
      "[upstreams.files]",
      'command = ["npx", "server"]',
      'prefx = "a_"',
      'isolation = "each"',
      "env = { A = 1 }",
      "[upstreams.both]",
      'command = ["x"]',
      'url = "http://127.0.0.1:1/mcp"',
      "[feeds.a]",
      'url = "ftp://h/e"',
      'uri = "events://a"',
      "[feeds.b]",
      'url = "ws://h/e"',
      'uri = "events://x"',
      "[feeds.c]",
      'url = "ws://h/e"',
      'uri = "events://x"',
      "[[policy.rules]]",
      'action = "allow"',
      "[[policy.rules]]",
      'acton = "allow"',
      "[builtin.shel]",
      "",
    ].join("\n");
    expect(linesOf(text)).toEqual([
      "f:1: upstream: is not known; did you mean upstreams?",
      "f:5: upstreams.files.prefx: is not known; did you mean prefix?",
      'f:6: upstreams.files.isolation: must be one of "grant", "shared"',
      "f:7: upstreams.files.env.A: must be a text",
      "f:8: upstreams.both: needs either command or url",
      "f:12: feeds.a.url: must look like ws://127.0.0.1:9000/events or http://127.0.0.1:9000/events, without credentials",
      "f:19: feeds.c.uri: is the uri of feeds.b too",
      "f:22: policy.rules[2].action: is missing",
      "f:23: policy.rules[2].acton: is not known; did you mean action?",
      "f:24: builtin.shel: is not known; did you mean shell?",
    ]);
  });

  it.each([
    ["b = \n", "f:1: the value is missing"],
    ["\nname\n", "f:2: a key needs = and a value"],
    ['a = "x\n', "f:1: the closing quote is missing"],
    ["[upstreams.a]\nurl = 1\nurl = 2\n", "f:3: this is given twice"],
    ["a = secret-value\n", "f:1: this is not TOML; texts need quotes"],
  ])("%j is no TOML at its line", (text, line) => {
    expect(linesOf(text)[0]?.startsWith(line), String(linesOf(text)[0])).toBe(true);
  });

  it("shows no value of the file, and takes a key such as __proto__ for what it is", () => {
    const shown = linesOf('[upstreams.a]\nurl = "http://me:hunter2@h/"\nheadersFile = 3\n[__proto__]\nx = "hunter2"\n').join("\n");
    expect(shown).toContain("f:4: __proto__: is not known");
    expect(shown).not.toContain("hunter2");
  });

  it("keeps the agent's own names to itself", () => {
    expect(linesOf('[upstreams.builtin]\ncommand = ["x"]\n[upstreams.a]\ncommand = ["x"]\nenv = { LONGLINE_KEY = "x" }\n')).toEqual([
      "f:1: upstreams.builtin: is a name that the agent uses itself",
      "f:5: upstreams.a.env.LONGLINE_KEY: is a name that programs never get",
    ]);
  });
});

describe("a declared tool", () => {
  it.each([
    ['command = ["x", "{b}"]', "{b} is no property of inputSchema"],
    ['command = ["x", "{n}"]', '{n} may be absent: put it into "required"'],
    ['command = ["{a}"]', "a caller does not choose the program"],
    ['command = ["sh", "-c", "echo {a}"]', "into a shell script"],
    ['command = ["env", "A=1", "/bin/bash", "-ec", "echo {a}"]', "into a shell script"],
    ['command = ["powershell.exe", "-File", "x.ps1", "{a}"]', "into a shell script"],
    ['command = ["ssh", "board", "cat", "{a}"]', "a shell on the other side"],
    ['command = ["adb", "-s", "1", "shell", "input", "text", "{a}"]', "a shell on the other side"],
    ['request = { method = "GET", url = "http://{a}/x" }', "in its path and query only"],
    ['request = { method = "GET", url = "http://h{a}.example/x" }', "in its path and query only"],
    ['request = { method = "GET", url = "ftp://h/{a}" }', "must look like http://"],
    ['request = { method = "GET", url = "http://h/{a}", body = "json" }', "does not go with GET"],
    ['request = { method = "POST", url = "http://h/", body = { x = [{ y = "{b}" }] } }', "{b} is no property"],
    ['request = { method = "POST", url = "http://h/", body = "xml" }', "or a table that is the body"],
    ['command = ["x"]\nresult = { kind = "image" }', "a command does not say what its image is"],
    ['command = ["x"]\noutputSchema = { type = "nothing" }', "is not a JSON Schema"],
    ['command = ["x"]\nresult = { kind = "text", path = "a" }', "must be a JSON pointer"],
    ['stdin = "{a}"', "needs either command or request"],
  ])("%s is a mistake", (rest, text) => {
    expect(tool(rest).join("\n")).toContain(text);
  });

  it.each([
    ['command = ["sh", "-c", "echo \\"$1\\"", "sh", "{a}"]'],
    ['command = ["x", "--n={d}", "{{a}}"]'],
    ['request = { method = "POST", url = "http://h/{a}?q={a}", body = { all = "{*}", one = "{a}" } }'],
  ])("%s is none", (rest) => {
    expect(tool(rest)).toEqual([]);
  });

  it("may give numbers, enums and strings with a whole pattern to a shell on the other side", () => {
    const text = `[tools.t]\ndescription = "d"\ncommand = ["adb", "shell", "input", "{n}", "{e}", "{p}"]\n[tools.t.inputSchema]\ntype = "object"\nrequired = ["n", "e", "p"]\n[tools.t.inputSchema.properties]\nn = { type = "integer" }\ne = { enum = ["a", "b"] }\np = { type = "string", pattern = "^[a-z]*$" }\n`;
    expect(linesOf(text)).toEqual([]);
  });
});
