import { expect, test } from "vitest";
import { shownWakeUrl, wakeUrlProblem } from "../../src/policy/wake-url.ts";

test.each([
  "https://ntfy.sh/my-phone",
  "https://wake.example:8443/a?b=c",
  "https://8.8.8.8/x",
  "https://172.32.0.1/",
  "https://100.128.0.1/",
])("%s can be posted to", (url) => {
  expect(wakeUrlProblem(url, "cloudflare")).toBeUndefined();
  expect(wakeUrlProblem(url, "embedded")).toBeUndefined();
});

test.each([
  "http://ntfy.sh/plain",
  "https://10.0.0.1/",
  "https://192.168.1.1/",
  "https://172.16.0.1/",
  "https://169.254.169.254/latest",
  "https://100.64.0.1/",
  "https://0.0.0.0/",
  "https://0x0a000001/",
  "https://167772161/",
  "https://[::ffff:10.0.0.1]/",
  "https://[fd00::1]/",
  "https://printer/",
  "https://printer.local/",
  "https://relay.internal./",
  "https://ada:secret@wake.example/",
  "https://wake.example/#x",
  "ftp://wake.example/",
  "not an address",
  `https://wake.example/${"x".repeat(2_048)}`,
])("%s cannot, on any runtime", (url) => {
  expect(wakeUrlProblem(url, "cloudflare")).toBeDefined();
  expect(wakeUrlProblem(url, "embedded")).toBeDefined();
});

test("a program of the relay's own machine can be, where the relay is embedded", () => {
  for (const url of ["http://127.0.0.1:4711/wake", "http://localhost:1/", "https://[::1]:2/"]) {
    expect(wakeUrlProblem(url, "embedded")).toBeUndefined();
    expect(wakeUrlProblem(url, "cloudflare")).toBeDefined();
  }
});

test("only its origin is shown", () => {
  expect(shownWakeUrl("https://ntfy.sh/secret-topic?token=1")).toBe("https://ntfy.sh/…");
});
