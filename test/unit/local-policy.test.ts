/** The device's own policy: which rule decides, and what is written down. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { CallLog } from "../../src/agent/call-log.ts";
import { loadConfig } from "../../src/agent/config/load-config.ts";
import { PolicySection } from "../../src/agent/config/policy-section.ts";
import { ASKS_FIRST, judge, toolFacts, type PolicyRequest } from "../../src/agent/local-policy.ts";
import { redactReport, secretsOf } from "../../src/agent/redact-report.ts";

const caller = { grant: "g_1", label: "Claude on the laptop", member: "m_7" };
const facts = toolFacts([
  JSON.stringify({ name: "shell", _meta: { [ASKS_FIRST]: true } }),
  JSON.stringify({ name: "screenshot", annotations: { readOnlyHint: true } }),
  JSON.stringify({ name: "touch_tap", annotations: { readOnlyHint: "true" } }),
  "not JSON",
]);

function verdict(policy: unknown, request: Partial<PolicyRequest> & { method: string }) {
  return judge(PolicySection.parse(policy), { caller, ...request }, (tool) => facts.get(tool));
}

const call = (target: string) => ({ method: "tools/call", target });

describe("a policy", () => {
  test("without rules allows everything but commands, which ask", () => {
    expect(verdict({}, call("screenshot"))).toEqual({ action: "allow", rule: "policy.default" });
    expect(verdict({}, call("shell"))).toEqual({ action: "ask", rule: "tools that run commands ask first" });
  });

  test("takes the first rule that matches", () => {
    const rules = [
      { tools: ["touch_*"], callers: ["Claude*"], action: "ask" },
      { tools: ["touch_*", "shell"], action: "allow" },
      { action: "deny" },
    ];
    expect(verdict({ rules }, call("touch_tap"))).toEqual({ action: "ask", rule: "policy.rules[1]" });
    expect(verdict({ rules }, { ...call("touch_tap"), caller: { ...caller, label: "x" } })).toEqual({
      action: "allow",
      rule: "policy.rules[2]",
    });
    expect(verdict({ rules }, call("shell"))).toEqual({ action: "allow", rule: "policy.rules[2]" });
    expect(verdict({ rules }, { method: "resources/read", target: "file:///a" })).toEqual({ action: "deny", rule: "policy.rules[3]" });
  });

  test.each([["g_1"], ["m_7"], ["*laptop"], ["!somebody else"]])("knows a caller by %s", (pattern) => {
    expect(verdict({ rules: [{ callers: [pattern], action: "deny" }] }, call("screenshot"))?.action).toBe("deny");
  });

  test("excludes with ! as a grant does", () => {
    const rules = [{ tools: ["*", "!screenshot"], action: "deny" }];
    expect(verdict({ rules }, call("screenshot"))?.action).toBe("allow");
    expect(verdict({ rules }, call("touch_tap"))?.action).toBe("deny");
  });

  test("counts an upstream's own name behind a prefix where that is stricter", () => {
    const prefixes = { names: ["x_"], resources: [] };
    const action = (rules: object[], target: string) =>
      judge(PolicySection.parse({ default: "deny", rules }), { caller, ...call(target) }, () => undefined, prefixes)?.action;
    const anything = { action: "allow" };
    expect(action([{ tools: ["shell"], action: "ask" }, anything], "x_shell")).toBe("ask");
    expect(action([{ tools: ["shell"], action: "deny" }, anything], "y_shell")).toBe("allow");
    expect(action([{ tools: ["shell"], action: "allow" }], "x_shell")).toBe("deny");
    expect(action([{ tools: ["*", "!shell"], action: "allow" }], "x_shell")).toBe("deny");
    expect(action([{ tools: ["*", "!shell"], action: "deny" }, anything], "x_shell")).toBe("deny");
  });

  test("that denies by default denies commands too", () => {
    expect(verdict({ default: "deny" }, call("shell"))).toEqual({ action: "deny", rule: "policy.default" });
    expect(verdict({ default: "deny", rules: [{ tools: ["shell"], action: "ask" }] }, call("shell"))?.action).toBe("ask");
  });

  test("that is read-only lets only tools through that say so, whatever a rule says", () => {
    const policy = { readOnly: true, rules: [{ action: "allow" }] };
    expect(verdict(policy, call("screenshot"))?.action).toBe("allow");
    for (const tool of ["shell", "touch_tap", "unknown"])
      expect(verdict(policy, call(tool))).toEqual({ action: "deny", rule: "policy.readOnly" });
    expect(verdict(policy, { method: "prompts/get", target: "p" })?.action).toBe("allow");
    expect(verdict(policy, { method: "vendor/do" })?.action).toBe("deny");
  });

  test("is not asked about lists", () => {
    for (const method of ["tools/list", "resources/templates/list", "ping"])
      expect(verdict({ default: "deny" }, { method })).toBeUndefined();
  });

  test("decides a completion by what it completes", () => {
    const rules = [{ prompts: ["secret*"], action: "deny" }];
    const complete = (ref: Record<string, unknown>) => verdict({ rules }, { method: "completion/complete", ref })?.action;
    expect(complete({ type: "ref/prompt", name: "secret plan" })).toBe("deny");
    expect(complete({ type: "ref/resource", uri: "file:///{path}" })).toBe("allow");
  });

  test("takes no word that it does not know", () => {
    for (const wrong of [
      { readonly: true },
      { rules: [{ tool: ["a"], action: "ask" }] },
      { rules: [{ tools: [], action: "ask" }] },
      { default: "maybe" },
    ])
      expect(PolicySection.safeParse(wrong).success, JSON.stringify(wrong)).toBe(false);
  });
});

describe("the log of calls", () => {
  function log(options: { maxBytes?: number } = {}) {
    const dir = mkdtempSync(join(tmpdir(), "longline-log-"));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    const warnings: string[] = [];
    let now = 1_000;
    const calls = new CallLog(dir, (text) => warnings.push(text), { now: () => (now += 5), ...options });
    onTestFinished(() => calls.close());
    const lines = (name: string) =>
      readFileSync(join(dir, name), "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    return { calls, dir, warnings, lines };
  }
  const entry = { callId: "c_1", method: "tools/call", target: "shell", caller };

  test("says who ran what by which rule, how it ended and how long it took; only its owner reads it", () => {
    const { calls, dir, lines } = log();
    calls.started(entry, "policy.default");
    calls.refused({ ...entry, callId: "c_2" }, "policy.readOnly", "no");
    calls.ended("c_1", "result");
    calls.ended("c_2", "refused_by_device");
    expect(lines("calls.log")).toEqual([
      { at: "1970-01-01T00:00:01.010Z", event: "run", ...entry, rule: "policy.default" },
      { at: "1970-01-01T00:00:01.015Z", event: "refused", ...entry, callId: "c_2", rule: "policy.readOnly", why: "no" },
      { at: "1970-01-01T00:00:01.025Z", event: "end", callId: "c_1", outcome: "result", ms: 15 },
    ]);
    expect(statSync(join(dir, "calls.log")).mode & 0o777).toBe(0o600);
  });

  test("stays within two files of its size", () => {
    const { calls, lines, dir } = log({ maxBytes: 2_000 });
    for (let n = 0; n < 100; n += 1) calls.started({ ...entry, callId: `c_${n}` }, "r");
    expect(statSync(join(dir, "calls.log")).size).toBeLessThanOrEqual(2_000);
    expect(statSync(join(dir, "calls.log.1")).size).toBeLessThanOrEqual(2_000);
    expect(lines("calls.log").at(-1)).toMatchObject({ callId: "c_99" });
    expect(JSON.parse(calls.tail(400).split("\n")[0] ?? "")).toMatchObject({ event: "run" });
  });

  test("that cannot be written warns once and costs no call", () => {
    const { calls, dir, warnings } = log();
    rmSync(dir, { recursive: true });
    calls.started(entry, "r");
    calls.started(entry, "r");
    expect(warnings).toEqual(["the log of calls cannot be written (ENOENT)"]);
  });
});

test("what the configuration gives the shell tool is among what a report does not hold", async () => {
  const dir = mkdtempSync(join(tmpdir(), "longline-test-"));
  const file = join(dir, "longline.toml");
  writeFileSync(file, '[builtin.shell]\nenv = { TOKEN = "shell-secret" }\n');
  const { upstreams } = await loadConfig(file, async () => ({}));
  expect(secretsOf({ deviceKey: "key", upstreams })).toContain("shell-secret");
  rmSync(dir, { recursive: true });
});

test("a report holds no key, no token and nothing that an upstream is started with", () => {
  const deviceKey = `llk_${"0".repeat(32)}_${"A".repeat(43)}`;
  const secrets = secretsOf({
    deviceKey,
    upstreams: [
      { kind: "stdio", alias: "a", command: "x", args: [], env: { TOKEN: 'qu"oted-secret' } },
      { kind: "http", alias: "b", url: new URL("http://h"), headers: { "x-key": "header-secret" } },
      { kind: "builtin", alias: "c", tools: [], secrets: ["shell-secret"] },
    ],
  });
  const message = `${deviceKey} qu"oted-secret header-secret shell-secret Bearer abcdefgh12345678 llo_${"B".repeat(43)} eyJhbGciOi.eyJzdWIi.c2ln`;
  const report = redactReport(
    {
      version: "1",
      status: { link: "online", generation: 1, upstreams: [], inFlight: 0 },
      events: [{ at: "", event: { type: "warning", message } }],
      callLog: message,
    },
    secrets,
  );
  expect(report.callLog).toBe("[secret] [secret] [secret] [secret] [secret] [secret] [secret]");
  expect(report.events[0]?.event).toEqual({ type: "warning", message: report.callLog });
});
