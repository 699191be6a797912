/** Signing in through an OIDC issuer and Cloudflare Access, with an issuer of the test's own. */
import { env } from "cloudflare:workers";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { forgetCounts } from "../../src/auth/rate-limit.ts";
import type { Env } from "../../src/env.ts";
import { listedRole, readSignInConfig } from "../../src/policy/sign-in-config.ts";
import { type Relay, startRelay } from "./api-support.ts";
import { type Browser, browser } from "./web-support.ts";

const ISSUER = "https://issuer.test";
const CLIENT = "longline";
const OIDC: Partial<Env> = {
  LONGLINE_OIDC_ISSUER: ISSUER,
  LONGLINE_OIDC_CLIENT_ID: CLIENT,
  LONGLINE_OIDC_CLIENT_SECRET: "s3cret",
  LONGLINE_SUBJECTS: "owner:ada@example.com, member:sub-7",
};
const ACCESS: Partial<Env> = {
  LONGLINE_ACCESS_TEAM: "acme",
  LONGLINE_ACCESS_AUDIENCE: "aud-tag",
  LONGLINE_SUBJECTS: "owner:ada@example.com",
};

/** What the issuer puts into the next token, and how it signs. */
let claims: JWTPayload;
let answer: { issuer?: string; audience?: string; expiresAt?: number; header?: string };
let tokenRequests: { body: URLSearchParams; authorization: string | null }[];

const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
const other = await generateKeyPair("ES256", { extractable: true });
const jwk = { ...(await exportJWK(publicKey)), kid: "k1", alg: "ES256" };

async function issue(key = privateKey): Promise<string> {
  return new SignJWT(claims)
    .setProtectedHeader({ alg: "ES256", kid: "k1" })
    .setIssuer(answer.issuer ?? ISSUER)
    .setAudience(answer.audience ?? CLIENT)
    .setIssuedAt()
    .setExpirationTime(answer.expiresAt ?? Math.floor(Date.now() / 1000) + 300)
    .sign(key);
}

function json(value: unknown): Response {
  return new Response(JSON.stringify(value), { headers: { "Content-Type": "application/json" } });
}

async function issuer(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const url = typeof input === "string" ? input : input instanceof URL ? input.href : input.url;
  if (url === `${ISSUER}/.well-known/openid-configuration`)
    return json({
      issuer: ISSUER,
      authorization_endpoint: `${ISSUER}/authorize`,
      token_endpoint: `${ISSUER}/token`,
      jwks_uri: `${ISSUER}/keys`,
    });
  if (url === `${ISSUER}/keys` || url === "https://acme.cloudflareaccess.com/cdn-cgi/access/certs") return json({ keys: [jwk] });
  if (url !== `${ISSUER}/token`) return new Response(null, { status: 404 });
  const headers = new Headers(init?.headers);
  tokenRequests.push({
    body: new URLSearchParams(typeof init?.body === "string" ? init.body : ""),
    authorization: headers.get("authorization"),
  });
  return json({ access_token: "x", token_type: "Bearer", id_token: await issue() });
}

beforeEach(() => {
  forgetCounts();
  claims = { sub: "sub-1", email: "ada@example.com", email_verified: true, name: "Ada" };
  answer = {};
  tokenRequests = [];
  vi.stubGlobal("fetch", issuer);
});
afterEach(() => {
  vi.unstubAllGlobals();
});

/** Begins at the relay, and comes back from the issuer with whatever it would add. */
async function comeBack(person: Browser, change: Record<string, string> = {}): Promise<Response> {
  const begun = await person.get("/sign-in/oidc?next=/pair");
  expect(begun.status).toBe(303);
  const url = new URL(begun.headers.get("location") ?? "");
  expect(url.origin + url.pathname).toBe(`${ISSUER}/authorize`);
  expect(url.searchParams.get("code_challenge_method")).toBe("S256");
  claims = { nonce: url.searchParams.get("nonce"), ...claims };
  const back = new URLSearchParams({ code: "c0de", state: url.searchParams.get("state") ?? "", ...change });
  return person.get(`/sign-in/oidc/callback?${back.toString()}`);
}

async function roleOf(relay: Relay, person: Browser): Promise<unknown> {
  const response = await relay.send("/api/me", { headers: { Cookie: person.cookie } });
  return response.status === 200 ? (await response.json<{ role: string }>()).role : response.status;
}

describe("an OIDC issuer", () => {
  it("signs a listed person in, with PKCE and the client's secret, and goes on to where they wanted", async () => {
    const relay = await startRelay(OIDC);
    const person = browser(relay);
    const back = await comeBack(person);
    expect([back.status, back.headers.get("location")]).toEqual([303, "/pair"]);
    expect(await roleOf(relay, person)).toBe("owner");
    const [request] = tokenRequests;
    expect(request?.authorization).toBe(`Basic ${btoa("longline:s3cret")}`);
    expect(request?.body.get("code_verifier")).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(request?.body.get("redirect_uri")).toBe("https://relay.test/sign-in/oidc/callback");
  });

  it("makes one person of one subject, whose role follows the list", async () => {
    const relay = await startRelay(OIDC);
    claims = { sub: "sub-7", name: "Grace" };
    const person = browser(relay);
    await comeBack(person);
    expect(await roleOf(relay, person)).toBe("member");
    claims = { sub: "sub-7", name: "Grace" };
    const promoted = await startRelay({ ...OIDC, LONGLINE_SUBJECTS: "owner:sub-7" });
    const again = browser(promoted);
    await comeBack(again);
    expect(await roleOf(promoted, again)).toBe("owner");
    const count = await env.DB.prepare("SELECT COUNT(*) AS n FROM members WHERE name = 'Grace'").first<number>("n");
    expect(count).toBe(1);
  });

  it.each([
    ["nobody on the list", { sub: "sub-2", email: "eve@example.com", email_verified: true }],
    ["an address that is not verified", { sub: "sub-2", email: "ada@example.com", email_verified: false }],
    ["an address without a word about it", { sub: "sub-2", email: "ada@example.com" }],
  ])("does not sign in %s", async (_name, who) => {
    const relay = await startRelay(OIDC);
    claims = who;
    const person = browser(relay);
    expect((await comeBack(person)).status).toBe(403);
    expect(await roleOf(relay, person)).toBe(401);
  });

  it("does not let a removed member back in", async () => {
    const relay = await startRelay(OIDC);
    claims = { sub: "sub-7", name: "Removed" };
    await comeBack(browser(relay));
    const id = await env.DB.prepare("SELECT member_id FROM identities WHERE subject = 'sub-7'").first<string>("member_id");
    await env.DB.prepare("UPDATE members SET removed_at = 1 WHERE id = ?").bind(id).run();
    claims = { sub: "sub-7" };
    expect((await comeBack(browser(relay))).status).toBe(403);
    await env.DB.prepare("UPDATE members SET removed_at = NULL WHERE id = ?").bind(id).run();
  });

  it.each<[string, () => void]>([
    ["for another audience", () => (answer.audience = "someone-else")],
    ["of another issuer", () => (answer.issuer = "https://evil.test")],
    ["that has expired", () => (answer.expiresAt = Math.floor(Date.now() / 1000) - 60)],
    ["with another nonce", () => (claims["nonce"] = "other")],
    ["for another party", () => (claims["azp"] = "someone-else")],
  ])("is not believed with a token %s", async (_name, spoil) => {
    const relay = await startRelay(OIDC);
    spoil();
    const person = browser(relay);
    expect((await comeBack(person)).status).toBe(403);
    expect(await roleOf(relay, person)).toBe(401);
  });

  it("is not believed without this browser's cookie, with another state, or for another issuer's answer", async () => {
    const relay = await startRelay(OIDC);
    expect((await comeBack(browser(relay), { state: "x" })).status).toBe(403);
    expect((await comeBack(browser(relay), { iss: "https://evil.test" })).status).toBe(403);
    const begun = await browser(relay).get("/sign-in/oidc");
    const state = new URL(begun.headers.get("location") ?? "").searchParams.get("state") ?? "";
    expect((await browser(relay).get(`/sign-in/oidc/callback?code=c&state=${state}`)).status).toBe(403);
    expect(tokenRequests).toEqual([]);
  });

  it("that does not answer is said so on a page", async () => {
    const relay = await startRelay(OIDC);
    vi.stubGlobal("fetch", async () => new Response("no", { status: 500 }));
    const response = await browser(relay).get("/sign-in/oidc");
    expect(response.status).toBe(502);
    expect(await response.text()).toContain("did not answer");
  });

  it("is not there when none is configured", async () => {
    const relay = await startRelay();
    expect((await browser(relay).get("/sign-in/oidc")).status).toBe(404);
    expect(await (await browser(relay).get("/sign-in")).text()).not.toContain("/sign-in/oidc");
  });
});

describe("Cloudflare Access", () => {
  async function arrive(token: string): Promise<unknown> {
    const relay = await startRelay(ACCESS);
    const response = await relay.send("/sign-in?next=/pair", { headers: { "Cf-Access-Jwt-Assertion": token }, redirect: "manual" });
    const cookie = response.headers.getSetCookie()[0]?.split(";")[0] ?? "";
    if (response.status !== 303) return response.status;
    return (await relay.send("/api/me", { headers: { Cookie: cookie } })).json<{ role: string }>().then((me) => me.role);
  }

  it("signs in whom its signature vouches for", async () => {
    answer = { issuer: "https://acme.cloudflareaccess.com", audience: "aud-tag" };
    expect(await arrive(await issue())).toBe("owner");
  });

  it("signs nobody in without one of its own, for this application, of somebody on the list", async () => {
    answer = { issuer: "https://acme.cloudflareaccess.com", audience: "other-app" };
    expect(await arrive(await issue())).toBe(200);
    answer = { issuer: "https://acme.cloudflareaccess.com", audience: "aud-tag" };
    expect(await arrive(await issue(other.privateKey))).toBe(200);
    expect(await arrive("not a token")).toBe(200);
    claims = { sub: "sub-9", email: "eve@example.com" };
    expect(await arrive(await issue())).toBe(403);
  });
});

describe("the configuration", () => {
  it.each<[Partial<Env>, string]>([
    [{ ...OIDC, LONGLINE_SUBJECTS: "" }, "LONGLINE_SUBJECTS"],
    [{ ...ACCESS, LONGLINE_SUBJECTS: " , " }, "LONGLINE_SUBJECTS"],
    [{ ...OIDC, LONGLINE_SUBJECTS: "ada@example.com" }, "LONGLINE_SUBJECTS"],
    [{ ...OIDC, LONGLINE_SUBJECTS: "admin:ada@example.com" }, "LONGLINE_SUBJECTS"],
    [{ ...OIDC, LONGLINE_OIDC_CLIENT_ID: "" }, "LONGLINE_OIDC_CLIENT_ID"],
    [{ ...OIDC, LONGLINE_OIDC_ISSUER: "http://issuer.test" }, "LONGLINE_OIDC_ISSUER"],
    [{ ...ACCESS, LONGLINE_ACCESS_AUDIENCE: "" }, "LONGLINE_ACCESS_AUDIENCE"],
    [{ ...ACCESS, LONGLINE_ACCESS_TEAM: "acme.evil.test/" }, "LONGLINE_ACCESS_TEAM"],
  ])("without an explicit list of people, or with a wrong value, lets nothing run: %j", (variables, name) => {
    expect(() => readSignInConfig(variables)).toThrow(name);
  });

  it("that is wrong is the answer to every request, with the variable's name and without its value", async () => {
    const relay = await startRelay();
    const wrong: Env = { ...relay.env, ...OIDC, LONGLINE_SUBJECTS: "s3cret-value" };
    const { createApp } = await import("../../src/app.ts");
    const { createExecutionContext } = await import("cloudflare:test");
    const response = await createApp().fetch(new Request("https://relay.test/health"), wrong, createExecutionContext());
    expect(response.status).toBe(500);
    const text = await response.text();
    expect(text).toContain("LONGLINE_SUBJECTS");
    expect(text).not.toContain("s3cret-value");
  });

  it("compares a subject exactly and an address without case", () => {
    const { subjects } = readSignInConfig({ LONGLINE_SUBJECTS: "owner:Ada@Example.com,member:sub-7" });
    expect(listedRole(subjects, { sub: "x", verifiedEmail: "ada@example.COM" })).toBe("owner");
    expect(listedRole(subjects, { sub: "Sub-7", verifiedEmail: undefined })).toBeUndefined();
    expect(listedRole(subjects, { sub: "sub-7", verifiedEmail: undefined })).toBe("member");
  });
});
