import { describe, expect, it } from "vitest";
import { decide, LISTS, visibleCapabilities, visibleItems } from "../../src/policy/decide.ts";

const lampOnly = { tools: ["lamp_*", "!lamp_off"] };

describe("a request", () => {
  it.each([
    ["tools/call", { target: "lamp_on" }, "allowed"],
    ["tools/call", { target: "lamp_off" }, "absent"],
    ["tools/call", { target: "shell" }, "beyond"],
    ["tools/call", {}, "beyond"],
    ["resources/read", { target: "file:///a" }, "beyond"],
    ["prompts/get", { target: "lamp_on" }, "beyond"],
    ["tools/list", {}, "allowed"],
    ["prompts/list", {}, "allowed"],
    ["completion/complete", { ref: { type: "ref/prompt", name: "p" } }, "beyond"],
    ["completion/complete", { ref: { type: "ref/unknown" } }, "beyond"],
    ["completion/complete", {}, "beyond"],
    ["tasks/get", {}, "method"],
    ["constructor", {}, "method"],
  ] as const)("%s %o under tool patterns is %s", (method, rest, decision) => {
    expect(decide(lampOnly, { method, ...rest })).toBe(decision);
  });

  it("under a full grant is allowed, except for methods that nobody may call", () => {
    expect(decide({}, { method: "tools/call", target: "x" })).toBe("allowed");
    expect(decide({}, { method: "completion/complete", ref: { type: "ref/resource", uri: "file:///a" } })).toBe("allowed");
    expect(decide({}, { method: "tasks/get" })).toBe("method");
  });

  it("is decided by the upstream's own name too where the device puts a prefix before it, for exclusions only", () => {
    const prefixes = { names: ["x_", "fs_"], resources: ["files+"] };
    const rights = { tools: ["*", "!shell"], resources: ["files+*", "!file:///etc/*"], prompts: ["plan"] };
    const decided = (method: string, target: string) => decide(rights, { method, target }, prefixes);
    expect(decided("tools/call", "x_shell")).toBe("absent");
    expect(decided("tools/call", "x_lamp")).toBe("allowed");
    expect(decided("tools/call", "y_shell")).toBe("allowed");
    expect(decided("resources/read", "files+file:///etc/passwd")).toBe("absent");
    expect(decided("resources/read", "files+file:///home/notes")).toBe("allowed");
    // What includes a thing is its public name alone.
    expect(decided("prompts/get", "x_plan")).toBe("beyond");
    const completion = { method: "completion/complete", ref: { type: "ref/resource", uri: "files+file:///etc/{name}" } };
    expect(decide(rights, completion, prefixes)).toBe("absent");
    const spec = LISTS.get("tools/list");
    expect(spec && visibleItems(rights, spec, [{ name: "x_shell" }, { name: "x_lamp" }], prefixes)).toEqual([{ name: "x_lamp" }]);
  });

  it("for completion follows what is completed", () => {
    const rights = { resources: ["file:///a/*"], prompts: ["p"] };
    expect(decide(rights, { method: "completion/complete", ref: { type: "ref/prompt", name: "p" } })).toBe("allowed");
    expect(decide(rights, { method: "completion/complete", ref: { type: "ref/resource", uri: "file:///a/{x}" } })).toBe("allowed");
    expect(decide(rights, { method: "completion/complete", ref: { type: "ref/resource", uri: "file:///b" } })).toBe("beyond");
  });
});

describe("what is shown", () => {
  it("holds only items that a grant covers, unchanged and in order", () => {
    const spec = LISTS.get("tools/list");
    if (spec === undefined) throw new Error("no list");
    const items = [
      { name: "shell" },
      { name: "lamp_on", x: { y: 1 } },
      { name: "lamp_off" },
      { title: "nameless" },
      null,
      { name: "lamp_b" },
    ];
    expect(visibleItems(lampOnly, spec, items)).toEqual([{ name: "lamp_on", x: { y: 1 } }, { name: "lamp_b" }]);
    expect(visibleItems({}, spec, items)).toEqual(items);
    expect(visibleItems({ prompts: ["*"] }, spec, items)).toEqual([]);
  });

  it("leaves out capabilities of kinds that a grant does not cover", () => {
    const capabilities = { tools: {}, resources: {}, prompts: {}, completions: {}, logging: {} };
    expect(visibleCapabilities(lampOnly, capabilities)).toEqual({ tools: {}, logging: {} });
    expect(visibleCapabilities({ prompts: ["*"] }, capabilities)).toEqual({ prompts: {}, completions: {}, logging: {} });
    expect(visibleCapabilities({}, capabilities)).toEqual(capabilities);
  });
});
