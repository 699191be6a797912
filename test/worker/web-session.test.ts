import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { localPath } from "../../src/auth/local-path.ts";
import { startRelay, tokenFor } from "./api-support.ts";
import { browser, signedIn } from "./web-support.ts";

describe("signing in with an owner token", () => {
  it("sets a __Host- cookie that scripts cannot read, and goes on to a local path", async () => {
    const relay = await startRelay();
    const visitor = browser(relay);
    const response = await visitor.post("/sign-in", { token: await tokenFor("owner"), next: "/pair?code=1" });
    expect(response.status).toBe(303);
    expect(response.headers.get("location")).toBe("/pair?code=1");
    const cookie = response.headers.get("set-cookie") ?? "";
    expect(cookie).toMatch(/^__Host-longline=lls_[A-Za-z0-9_-]{43}; /);
    for (const attribute of ["HttpOnly", "Secure", "SameSite=Lax", "Path=/"]) expect(cookie).toContain(attribute);
    expect(cookie).not.toContain("Domain");
  });

  it("uses a plain cookie with the port in its name on http loopback", async () => {
    const relay = await startRelay();
    const response = await browser(relay, "http://localhost:8787").post("/sign-in", { token: await tokenFor("owner"), next: "/" });
    expect(response.headers.get("set-cookie")).toMatch(/^longline-8787=lls_[^;]+; (?!.*Secure).*HttpOnly/);
  });

  it("keeps only the session's hash", async () => {
    const relay = await startRelay();
    const { cookie } = await signedIn(relay, await tokenFor("owner"));
    const { results } = await env.DB.prepare("SELECT * FROM web_sessions").all();
    expect(results.length).toBeGreaterThan(0);
    expect(JSON.stringify(results)).not.toContain(cookie.split("=")[1]);
  });

  it("refuses a wrong token with a page that does not repeat it", async () => {
    const relay = await startRelay();
    const response = await browser(relay).post("/sign-in", { token: "llo_wrong", next: "/account" });
    expect(response.status).toBe(401);
    expect(response.headers.get("set-cookie")).toBeNull();
    expect(await response.text()).not.toContain("llo_wrong");
  });

  it.each([null, "null", "https://evil.example", "http://relay.test", "http://localhost:8787"])(
    "refuses a form from %j",
    async (origin) => {
      const relay = await startRelay();
      const response = await browser(relay).post("/sign-in", { token: await tokenFor("owner"), next: "/" }, origin);
      expect(response.status).toBe(403);
      expect(response.headers.get("set-cookie")).toBeNull();
    },
  );

  it("ends the session at sign-out, also for a copy of the cookie", async () => {
    const relay = await startRelay();
    const visitor = await signedIn(relay, await tokenFor("owner"));
    const copy = visitor.cookie;
    expect((await visitor.post("/sign-out", {})).status).toBe(303);
    expect(visitor.cookie).toBe("");
    visitor.cookie = copy;
    expect((await visitor.get("/sign-in")).status).toBe(200);
  });

  it("does not know an expired session", async () => {
    const relay = await startRelay();
    const visitor = await signedIn(relay, await tokenFor("owner"));
    expect((await visitor.get("/sign-in")).status).toBe(303);
    await env.DB.prepare("UPDATE web_sessions SET expires_at = ?").bind(Date.now()).run();
    expect((await visitor.get("/sign-in")).status).toBe(200);
  });
});

describe("pages", () => {
  it("allow no frame, no foreign origin and no script without the nonce, and let a form say where it comes from", async () => {
    const relay = await startRelay();
    const response = await relay.send("/sign-in?next=/%22%3E%3Cscript%3Ealert(1)%3C/script%3E");
    const policy = response.headers.get("content-security-policy") ?? "";
    for (const part of ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"])
      expect(policy.split("; ")).toContain(part);
    expect(policy).not.toMatch(/unsafe|\*|http/);
    expect(response.headers.get("x-frame-options")).toBe("DENY");
    // With no-referrer a browser sends `Origin: null` with a form.
    expect(response.headers.get("referrer-policy")).toBe("same-origin");
    expect(await response.text()).not.toContain("<script>");
  });
});

describe("where a page goes on to", () => {
  it.each([
    "https://evil.example",
    "//evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "javascript:alert(1)",
    "evil",
    "",
    " /x",
    "/./\\/evil.example",
    "/..//evil.example",
    "/x".repeat(9_000),
  ])("never leaves the relay for %j", (text) => {
    expect(localPath(text, "/account")).toBe("/account");
  });

  it("keeps path and query", () => {
    expect(localPath("/oauth/authorize?client_id=https%3A%2F%2Fapp.example&x=1", "/")).toBe(
      "/oauth/authorize?client_id=https%3A%2F%2Fapp.example&x=1",
    );
  });
});
