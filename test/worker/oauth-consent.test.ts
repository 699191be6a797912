/** The consent page: whom it shows what, what it gives, and what a hostile page or client cannot do. */
import { env } from "cloudflare:workers";
import { decodeJwt } from "jose";
import { describe, expect, test } from "vitest";
import { hashSecret, randomId } from "../../src/auth/secrets.ts";
import { findGrant } from "../../src/db/grants.ts";
import type { Rights } from "../../src/policy/grant.ts";
import { addDevice, ORIGIN, tokenFor } from "./api-support.ts";
import {
  authorizePath,
  CALLBACK,
  connect,
  decide,
  type Flow,
  formOf,
  oauthErrorOf,
  pkce,
  postForm,
  publicClient,
  redeem,
  refresh,
  startFlow,
  type Tokens,
} from "./oauth-support.ts";
import { type Browser, browser, signedIn } from "./web-support.ts";

async function rightsOf(tokens: Pick<Tokens, "access_token">): Promise<Rights | undefined> {
  return (await findGrant(env.DB, decodeJwt<{ grant: string }>(tokens.access_token).grant))?.grant.rights;
}

/** A member, signed in, with what an invitation gave them on the device. */
async function member(flow: Flow, given: Rights | null, grantMs: number | null = null): Promise<Browser> {
  const token = await tokenFor("member");
  const self = await signedIn(flow.relay, token);
  if (given === null) return self;
  const owner = await env.DB.prepare("SELECT member_id FROM owner_tokens WHERE hash = ?")
    .bind(await hashSecret(token))
    .first<string>("member_id");
  await env.DB.prepare(
    `INSERT INTO invitations (id, hash, label, role, device_id, rights, grant_ms, created_by, created_at, expires_at, taken_at, taken_by)
     VALUES (?1, ?1, 'test', 'member', ?2, ?3, ?4, ?5, 1, 1, 1, ?5)`,
  )
    .bind(randomId(), flow.device.id, JSON.stringify(given), grantMs, owner)
    .run();
  return self;
}

async function started(): Promise<{ flow: Flow; clientId: string; path: string; pair: Awaited<ReturnType<typeof pkce>> }> {
  const flow = await startFlow();
  const clientId = await publicClient(flow.relay);
  const pair = await pkce();
  return { flow, clientId, pair, path: authorizePath(flow, clientId, pair) };
}

describe("the page", () => {
  test("shows client, address, device, tools and end, and cannot be framed", async () => {
    const { flow, path } = await started();
    const response = await flow.owner.get(path);
    const html = await response.text();
    for (const text of [
      "Test Client",
      "it says so itself",
      "app.example",
      flow.device.device,
      "screenshot",
      "says that it only reads",
      "says that it can destroy",
      "90 days",
    ])
      expect(html).toContain(text);
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("form-action 'self' https://app.example;");
    expect(response.headers.get("x-frame-options")).toBe("DENY");
    expect(response.headers.get("cache-control")).toBe("no-store");
  });

  test("a client's name cannot be markup, or hide what it says", async () => {
    const { flow } = await started();
    const clientId = await publicClient(flow.relay, { client_name: `<script>alert(1)</script>\u202eevil\u001b[31m${"x".repeat(300)}` });
    const html = await (await flow.owner.get(authorizePath(flow, clientId, await pkce()))).text();
    expect(html).not.toContain("<script>alert");
    expect(html).toContain("&lt;script&gt;");
    expect(html).not.toContain("\u202e");
    expect(html).not.toContain("\u001b");
    expect(html).not.toContain("x".repeat(101));
  });

  test("a GET grants nothing", async () => {
    const { flow, path } = await started();
    await flow.owner.get(path);
    const { results } = await env.DB.prepare("SELECT id FROM grants WHERE device_id = ?").bind(flow.device.id).all();
    expect(results).toEqual([]);
  });

  test("a device that is away still has its last known tools, and one that never came none", async () => {
    const { flow, path } = await started();
    flow.relay.objects.tools = null;
    expect(await (await flow.owner.get(path)).text()).toContain("has not said yet which tools it has");
    flow.relay.objects.failing.add("offeredTools");
    expect((await flow.owner.get(path)).status).toBe(200);
  });
});

describe("what is given", () => {
  test("all listed tools are ticked for a client that names none, and ticking fewer narrows", async () => {
    const { flow, clientId } = await started();
    expect(await rightsOf(await connect(flow, clientId))).toEqual({ tools: ["screenshot", "touch", "shell"] });
    const other = await publicClient(flow.relay, { client_name: "Other" });
    expect(await rightsOf(await connect(flow, other, { tools: ["touch"] }))).toEqual({ tools: ["touch"] });
    const none = await publicClient(flow.relay, { client_name: "None" });
    expect(await rightsOf(await connect(flow, none, { tools: [] }))).toEqual({ tools: [] });
  });

  test("everything is a full grant, resources and prompts come only when ticked", async () => {
    const { flow, clientId } = await started();
    expect(await rightsOf(await connect(flow, clientId, { all: true }))).toEqual({});
    const other = await publicClient(flow.relay, { client_name: "Other" });
    const fields: [string, string][] = [["resources", "yes"]];
    expect(await rightsOf(await connect(flow, other, { tools: ["touch"], fields }))).toEqual({ tools: ["touch"], resources: ["*"] });
  });

  test("a tool that is named like a pattern cannot be ticked", async () => {
    const { flow, clientId } = await started();
    flow.relay.objects.tools = [
      { name: "*", readOnly: false, destructive: false },
      { name: "!touch", readOnly: false, destructive: false },
    ];
    const html = await (await flow.owner.get(authorizePath(flow, clientId, await pkce()))).text();
    expect(formOf(html).filter(([name]) => name === "tool")).toEqual([]);
    expect(await rightsOf(await connect(flow, clientId, { tools: ["*", "t*", "!touch"] }))).toEqual({ tools: [] });
  });

  test("the end is the chosen one", async () => {
    const { flow, path, clientId, pair } = await started();
    const html = await (await flow.owner.get(path)).text();
    const fields = formOf(html).filter(([name]) => name !== "days");
    const response = await postForm(flow, flow.owner, [...fields, ["days", "7"], ["decision", "allow"]]);
    const code = new URL(response.headers.get("location") ?? "").searchParams.get("code") ?? "";
    const tokens = await (await redeem(flow, clientId, code, pair)).json<Tokens>();
    const record = await findGrant(env.DB, decodeJwt<{ grant: string }>(tokens.access_token).grant);
    const days = ((record?.grant.expiresAt ?? 0) - Date.now()) / 86_400_000;
    expect(Math.round(days)).toBe(7);
    for (const bad of ["91", "0", "-1", "x", "Infinity"]) {
      const refused = await postForm(flow, flow.owner, [...fields, ["days", bad], ["decision", "allow"]]);
      expect(refused.status).toBe(400);
    }
  });

  test("when the object does not take the grant there is no code", async () => {
    const { flow, path } = await started();
    const fields = formOf(await (await flow.owner.get(path)).text());
    flow.relay.objects.failing.add("putGrant");
    const response = await postForm(flow, flow.owner, [...fields, ["decision", "allow"]]);
    expect(response.status).toBe(400);
    expect(response.headers.get("location")).toBeNull();
    expect(await response.text()).toContain("did not take the grant");
  });
});

describe("members", () => {
  test("may pass on what they were given and nothing beyond", async () => {
    const { flow, path, clientId, pair } = await started();
    const person = await member(flow, { tools: ["screenshot", "touch"] }, 3 * 86_400_000);
    const html = await (await person.get(path)).text();
    expect(html).toContain("touch");
    expect(html).not.toContain("shell");
    const back = await decide(flow, person, path, { tools: ["touch", "shell"] });
    const tokens = await (await redeem(flow, clientId, back.searchParams.get("code") ?? "", pair)).json<Tokens>();
    expect(await rightsOf(tokens)).toEqual({ tools: ["touch"] });
    const record = await findGrant(env.DB, decodeJwt<{ grant: string }>(tokens.access_token).grant);
    expect(record?.grant.expiresAt).toBeLessThanOrEqual(Date.now() + 3 * 86_400_000 + 1000);
  });

  test("get their own rights for everything, and not a full grant", async () => {
    const { flow, path, clientId, pair } = await started();
    const person = await member(flow, { tools: ["t*", "!touch"], prompts: ["p"] });
    const back = await decide(flow, person, path, { all: true, fields: [["resources", "yes"]] });
    const tokens = await (await redeem(flow, clientId, back.searchParams.get("code") ?? "", pair)).json<Tokens>();
    expect(await rightsOf(tokens)).toEqual({ tools: ["t*", "!touch"], prompts: ["p"] });
  });

  test("a device that is not theirs looks like one that does not exist", async () => {
    const { flow, path, clientId, pair } = await started();
    const person = await member(flow, null);
    const answers = await Promise.all([
      person.get(path),
      person.get(authorizePath(flow, clientId, pair, { resource: `${ORIGIN}/mcp/no-such-device` })),
    ]);
    const texts = await Promise.all(answers.map(async (answer) => [answer.status, (await answer.text()).replaceAll(/nonce="[^"]*"/g, "")]));
    expect(texts[0]).toEqual(texts[1]);
    expect(texts[0]?.[0]).toBe(400);
  });
});

describe("requests that are not as they should be", () => {
  test.each<[string, Record<string, string | undefined>, string]>([
    ["no resource", { resource: undefined }, "invalid_target"],
    ["another relay's resource", { resource: "https://elsewhere.example/mcp/pi" }, "invalid_target"],
    ["a resource with a slash at its end", { resource: "SLASH" }, "invalid_target"],
    ["a resource with a query", { resource: "QUERY" }, "invalid_target"],
    ["the relay as resource", { resource: ORIGIN }, "invalid_target"],
    ["no PKCE", { code_challenge: undefined, code_challenge_method: undefined }, "invalid_request"],
    ["plain PKCE", { code_challenge_method: "plain" }, "invalid_request"],
    ["PKCE without a method", { code_challenge_method: undefined }, "invalid_request"],
    ["a challenge that is no hash", { code_challenge: "short" }, "invalid_request"],
    ["the implicit flow", { response_type: "token" }, "unsupported_response_type"],
    ["a fragment as answer", { response_mode: "fragment" }, "invalid_request"],
  ])("%s leads to no automatic redirect, and the client is told on a click", async (_what, changes, error) => {
    const { flow, clientId, pair } = await started();
    const { mcpUrl } = flow.device;
    const near = new Map([
      ["SLASH", `${mcpUrl}/`],
      ["QUERY", `${mcpUrl}?a=1`],
    ]).get(changes["resource"] ?? "");
    const path = authorizePath(flow, clientId, pair, near === undefined ? changes : { ...changes, resource: near });
    // Nobody has to be signed in to hear that.
    const response = await browser(flow.relay).get(path);
    expect(response.status).toBe(400);
    expect(response.headers.get("location")).toBeNull();
    const link = /id="back" href="([^"]*)"/.exec(await response.text())?.[1]?.replaceAll("&amp;", "&") ?? "";
    expect(link.startsWith(`${CALLBACK}?`)).toBe(true);
    expect(Object.fromEntries(new URL(link).searchParams)).toMatchObject({ error, iss: ORIGIN, state: "s t&=#" });
  });

  test("a program on this machine is told at once", async () => {
    const { flow, pair } = await started();
    const redirect = "http://localhost:40123/callback";
    const clientId = await publicClient(flow.relay, { redirect_uris: ["http://localhost/callback"] });
    const response = await browser(flow.relay).get(authorizePath(flow, clientId, pair, { redirect_uri: redirect, resource: undefined }));
    expect(response.status).toBe(302);
    expect(response.headers.get("location")).toMatch(/^http:\/\/localhost:40123\/callback\?error=invalid_target&/);
  });

  test.each([
    ["an unknown client", { client_id: "nobody" }],
    ["no client", { client_id: undefined }],
    ["no redirect URI", { redirect_uri: undefined }],
    ["an unregistered redirect URI", { redirect_uri: "https://evil.example/callback" }],
    ["a longer redirect URI", { redirect_uri: `${CALLBACK}/more` }],
    ["a redirect URI with a query", { redirect_uri: `${CALLBACK}?next=//evil.example` }],
    ["a script as redirect URI", { redirect_uri: "javascript:alert(1)" }],
    ["an unreadable metadata document", { client_id: "https://client.test/missing.json" }],
    [
      "a metadata document of another client",
      { client_id: "https://client.test/other-id.json", redirect_uri: "https://client.test/callback" },
    ],
    [
      "a metadata document without a name",
      { client_id: "https://client.test/nameless.json", redirect_uri: "https://client.test/callback" },
    ],
    [
      "a metadata document that is too large",
      { client_id: "https://client.test/large.json", redirect_uri: "https://client.test/callback" },
    ],
    ["a metadata document at http", { client_id: "http://client.test/good.json" }],
  ])("%s is told to the person and goes nowhere", async (_what, changes) => {
    const { flow, clientId, pair } = await started();
    const response = await flow.owner.get(authorizePath(flow, clientId, pair, changes));
    expect(response.status).toBe(400);
    expect(response.headers.get("location")).toBeNull();
    const html = await response.text();
    expect(html).not.toContain('id="back"');
    expect(html).not.toContain("javascript:");
  });

  test("a registered scheme that no known application has cannot be used", async () => {
    const { flow, pair } = await started();
    const clientId = await publicClient(flow.relay, { redirect_uris: [CALLBACK, "invented://callback"] });
    const response = await flow.owner.get(authorizePath(flow, clientId, pair, { redirect_uri: "invented://callback" }));
    expect(response.status).toBe(400);
    expect(await response.text()).not.toContain("invented://callback");
  });

  test("a parameter that is repeated is refused", async () => {
    const { flow, path } = await started();
    for (const more of [
      "resource=https%3A%2F%2Felsewhere.example%2F",
      "redirect_uri=https%3A%2F%2Fevil.example",
      "client_id=x",
      "state=2",
    ]) {
      const response = await flow.owner.get(`${path}&${more}`);
      expect(response.status).toBe(400);
      expect(await response.text()).toContain("more than once");
    }
  });
});

describe("forged answers", () => {
  async function form(): Promise<{ flow: Flow; fields: [string, string][]; path: string }> {
    const { flow, path } = await started();
    return { flow, path, fields: [...formOf(await (await flow.owner.get(path)).text()), ["decision", "allow"]] };
  }

  test.each([["https://evil.example"], ["null"], [null], ["http://localhost:8787"]])("from the origin %s are refused", async (origin) => {
    const { flow, fields } = await form();
    const response = await postForm(flow, flow.owner, fields, origin);
    expect(response.status).toBe(403);
    expect(response.headers.get("location")).toBeNull();
  });

  test("without the form's own value, with a made-up one, or with another session's are refused", async () => {
    const { flow, fields, path } = await form();
    const rest = fields.filter(([name]) => name !== "consent");
    const stranger = await signedIn(flow.relay, await tokenFor("owner"));
    const theirs = formOf(await (await stranger.get(path)).text()).find(([name]) => name === "consent");
    for (const consent of [[], [["consent", "x"]], [["consent", ""]], [theirs]] as [string, string][][]) {
      const response = await postForm(flow, flow.owner, [...rest, ...consent]);
      expect(response.status).toBe(400);
      expect(response.headers.get("location")).toBeNull();
    }
    expect((await postForm(flow, browser(flow.relay), fields)).status).toBe(400);
  });

  test("cannot change the request that was shown", async () => {
    const { flow, fields } = await form();
    const response = await postForm(flow, flow.owner, [...fields, ["redirect_uri", "https://evil.example/"], ["client_id", "x"]]);
    expect(response.headers.get("location")?.startsWith(`${CALLBACK}?code=`)).toBe(true);
  });

  test("without a decision decide nothing", async () => {
    const { flow, fields } = await form();
    const response = await postForm(
      flow,
      flow.owner,
      fields.filter(([name]) => name !== "decision"),
    );
    expect(response.status).toBe(400);
  });
});

describe("step-up", () => {
  const scope = "device:read device:call tool:shell";

  async function narrow(): Promise<{ flow: Flow; clientId: string; tokens: Tokens }> {
    const { flow, clientId } = await started();
    return { flow, clientId, tokens: await connect(flow, clientId, { tools: ["screenshot"] }) };
  }

  test("shows the tool that is asked for beside what is there, and widens the same grant", async () => {
    const { flow, clientId, tokens } = await narrow();
    const html = await (await flow.owner.get(authorizePath(flow, clientId, await pkce(), { scope }))).text();
    expect(html).toContain("has access already");
    expect(formOf(html).filter(([name]) => name === "tool")).toEqual([
      ["tool", "shell"],
      ["tool", "screenshot"],
    ]);
    const wider = await connect(flow, clientId, {}, { scope });
    expect(decodeJwt(wider.access_token)["grant"]).toBe(decodeJwt(tokens.access_token)["grant"]);
    expect(await rightsOf(wider)).toEqual({ tools: ["shell", "screenshot"] });
    expect(wider.scope).toBe("device:read device:call tool:shell");
    const told = flow.relay.objects.notes.filter((note) => note.method === "putGrant").at(-1);
    expect(told?.argument).toMatchObject({ rights: { tools: ["shell", "screenshot"] } });
    expect((await refresh(flow, clientId, tokens.refresh_token)).status).toBe(200);
  });

  test("a tool that is asked for and not ticked looks absent from then on, and is not granted", async () => {
    const { flow, clientId } = await narrow();
    const after = await connect(flow, clientId, { tools: ["screenshot"] }, { scope });
    expect(await rightsOf(after)).toEqual({ tools: ["screenshot", "!shell"] });
    expect(after.scope).toBe("device:read device:call");
  });

  test("what was declined is answered as declined without asking again, for a while", async () => {
    const { flow, clientId } = await narrow();
    const path = authorizePath(flow, clientId, await pkce(), { scope });
    const back = await decide(flow, flow.owner, path, { decision: "deny" });
    expect(back.searchParams.get("error")).toBe("access_denied");
    const again = await flow.owner.get(path);
    expect(again.status).toBe(302);
    const target = new URL(again.headers.get("location") ?? "");
    expect(Object.fromEntries(target.searchParams)).toMatchObject({ error: "access_denied", iss: ORIGIN, state: "s t&=#" });
    const more = await flow.owner.get(authorizePath(flow, clientId, await pkce(), { scope: `${scope} tool:touch` }));
    expect(more.status).toBe(200);
    await env.DB.prepare("UPDATE oauth_declined SET until = 1").run();
    expect((await flow.owner.get(path)).status).toBe(200);
  });

  test("declining leaves what was there, and the tool absent; allowing it later takes that back", async () => {
    const { flow, clientId, tokens } = await narrow();
    await decide(flow, flow.owner, authorizePath(flow, clientId, await pkce(), { scope }), { decision: "deny" });
    expect(await rightsOf(tokens)).toEqual({ tools: ["screenshot", "!shell"] });
    await env.DB.prepare("UPDATE oauth_declined SET until = 1").run();
    const wider = await connect(flow, clientId, { tools: ["screenshot", "shell"] }, { scope });
    expect(await rightsOf(wider)).toEqual({ tools: ["screenshot", "shell"] });
  });

  test("an exclusion that somebody else set cannot be ticked away", async () => {
    const { flow, clientId, tokens } = await narrow();
    await env.DB.prepare("UPDATE grants SET rights = ? WHERE id = ?")
      .bind(JSON.stringify({ tools: ["screenshot", "!shell"] }), decodeJwt<{ grant: string }>(tokens.access_token).grant)
      .run();
    expect(await rightsOf(await connect(flow, clientId, { tools: ["screenshot", "shell"] }, { scope }))).toEqual({
      tools: ["screenshot", "shell", "!shell"],
    });
    expect(await rightsOf(await connect(flow, clientId, { all: true }, { scope }))).toMatchObject({ tools: ["*", "!shell"] });
  });

  test("a paused grant cannot be stepped around", async () => {
    const { flow, clientId, tokens } = await narrow();
    await env.DB.prepare("UPDATE grants SET paused_at = 1 WHERE id = ?")
      .bind(decodeJwt<{ grant: string }>(tokens.access_token).grant)
      .run();
    const path = authorizePath(flow, clientId, await pkce(), { scope });
    const fields = formOf(await (await flow.owner.get(path)).text());
    const response = await postForm(flow, flow.owner, [...fields, ["decision", "allow"]]);
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("paused");
  });

  test("a tool the device does not list can be allowed by name, and its name is only text", async () => {
    const { flow, clientId } = await started();
    const path = authorizePath(flow, clientId, await pkce(), { scope: "device:read tool:later tool:<b> tool:* tool:%zz" });
    const html = await (await flow.owner.get(path)).text();
    expect(html).toContain("the device does not list it");
    expect(html).not.toContain("<b>");
    expect(formOf(html).filter(([name]) => name === "tool")[0]).toEqual(["tool", "later"]);
    expect(html).not.toContain('value="*"');
  });
});

test("another device of the same person needs its own consent", async () => {
  const { flow, clientId } = await started();
  const tokens = await connect(flow, clientId);
  const second = await addDevice(flow.relay);
  const response = await refresh(flow, clientId, tokens.refresh_token, { resource: second.mcpUrl });
  expect(await oauthErrorOf(response)).toBe("invalid_target");
});
