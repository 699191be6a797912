/** The authorization server: discovery, registration, consent, tokens. */
import { env } from "cloudflare:workers";
import { decodeJwt, decodeProtectedHeader } from "jose";
import { describe, expect, test } from "vitest";
import { verifyAccessToken } from "../../src/auth/access-token.ts";
import { findGrant } from "../../src/db/grants.ts";
import { ORIGIN, startRelay } from "./api-support.ts";
import {
  authorizePath,
  CALLBACK,
  connect,
  decide,
  oauthErrorOf,
  pkce,
  publicClient,
  redeem,
  refresh,
  register,
  startFlow,
  token,
} from "./oauth-support.ts";
import { browser } from "./web-support.ts";

describe("discovery", () => {
  test.each(["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"])(
    "%s describes the server and no device",
    async (path) => {
      const { relay, device } = await startFlow();
      const response = await relay.send(path);
      expect(response.status).toBe(200);
      const text = await response.text();
      expect(JSON.parse(text)).toMatchObject({
        issuer: ORIGIN,
        authorization_endpoint: `${ORIGIN}/oauth/authorize`,
        token_endpoint: `${ORIGIN}/oauth/token`,
        registration_endpoint: `${ORIGIN}/oauth/register`,
        revocation_endpoint: `${ORIGIN}/oauth/revoke`,
        code_challenge_methods_supported: ["S256"],
        response_types_supported: ["code"],
        grant_types_supported: ["authorization_code", "refresh_token"],
        authorization_response_iss_parameter_supported: true,
        client_id_metadata_document_supported: true,
        scopes_supported: ["device:read", "device:call"],
      });
      expect(text).not.toContain(device.device);
      expect(text).not.toContain("protected_resources");
      expect(text).not.toContain("/mcp/");
      expect(text).not.toContain("offline_access");
    },
  );

  test("a relay on plain http in a network has no OAuth and says why", async () => {
    const relay = await startRelay({ LONGLINE_ORIGINS: "http://192.168.1.2:8787" });
    const at = (path: string): string => `http://192.168.1.2:8787${path}`;
    for (const path of ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/oauth/authorize?client_id=x"]) {
      const response = await relay.send(at(path));
      expect(response.status).toBe(404);
      expect(await response.text()).toContain("plain http");
    }
    for (const path of ["/oauth/token", "/oauth/register", "/oauth/revoke"]) {
      const response = await relay.send(at(path), { method: "POST", body: "x" });
      expect(response.status).toBe(404);
      expect(await response.text()).toContain("longline token create");
    }
    const metadata = await relay.send(at("/.well-known/oauth-protected-resource/mcp/pi"));
    expect(metadata.status).toBe(200);
    const document = await metadata.json<Record<string, unknown>>();
    expect(document).not.toHaveProperty("authorization_servers");
    expect(document["dev.longline/oauth"]).toContain("plain http");
  });

  test("endpoints that take POST say so", async () => {
    const relay = await startRelay();
    for (const path of ["/oauth/token", "/oauth/register", "/oauth/revoke"]) {
      const response = await relay.send(path);
      expect(response.status).toBe(405);
      expect(response.headers.get("allow")).toBe("POST, OPTIONS");
    }
  });
});

describe("registration", () => {
  test.each([
    ["claude.ai", ["https://claude.ai/api/mcp/auth_callback", "https://claude.com/api/mcp/auth_callback"]],
    ["ChatGPT", ["https://chatgpt.com/connector_platform_oauth_redirect"]],
    ["VS Code", ["http://127.0.0.1/", "http://127.0.0.1:33418/", "https://vscode.dev/redirect", "vscode://dynamicauthprovider/callback"]],
    ["Cursor", ["cursor://anysphere.cursor-mcp/oauth/callback"]],
    ["a command-line client", ["http://localhost:41234/callback"]],
    ["an application with a reverse-domain scheme", ["com.example.app:/oauth"]],
  ])("takes the redirect URIs of %s", async (_client, redirect_uris) => {
    const response = await register(await startRelay(), { redirect_uris, application_type: "native" });
    expect(response.status).toBe(201);
    expect(await response.json()).toMatchObject({ redirect_uris, token_endpoint_auth_method: "none" });
  });

  test.each([
    ["http to another machine", ["http://app.example/callback"]],
    ["a script", ["javascript:alert(1)"]],
    ["a made-up scheme", ["invented://callback"]],
    ["a fragment", ["https://app.example/#here"]],
    ["a user", ["https://you@app.example/"]],
    ["nothing", []],
    ["too many", Array.from({ length: 21 }, (_, at) => `https://app.example/${at}`)],
  ])("refuses %s", async (_what, redirect_uris) => {
    const response = await register(await startRelay(), { redirect_uris });
    expect(response.status).toBe(400);
    expect(["invalid_redirect_uri", "invalid_client_metadata"]).toContain(await oauthErrorOf(response));
  });

  test("refuses a body that is too large", async () => {
    const response = await register(await startRelay(), { client_name: "x".repeat(40_000) });
    expect(response.status).toBe(413);
  });
});

describe("the flow", () => {
  test("leads from consent to a token of ours that the MCP endpoint knows", async () => {
    const flow = await startFlow();
    const clientId = await publicClient(flow.relay);
    const pair = await pkce();
    const back = await decide(flow, flow.owner, authorizePath(flow, clientId, pair), { tools: ["screenshot"] });
    expect(back.origin + back.pathname).toBe(CALLBACK);
    expect(back.searchParams.get("state")).toBe("s t&=#");
    expect(back.searchParams.get("iss")).toBe(ORIGIN);
    const response = await redeem(flow, clientId, back.searchParams.get("code") ?? "", pair);
    expect(response.status).toBe(200);
    expect(response.headers.get("cache-control")).toBe("no-store");
    const tokens = await response.json<Record<string, string>>();
    expect(tokens).toMatchObject({
      token_type: "Bearer",
      expires_in: 3600,
      scope: "device:read device:call",
      resource: flow.device.mcpUrl,
    });
    expect(decodeProtectedHeader(tokens["access_token"] ?? "")).toMatchObject({ alg: "EdDSA", typ: "longline+jwt" });
    const claims = await verifyAccessToken(env, tokens["access_token"] ?? "");
    expect(claims).toMatchObject({ aud: flow.device.mcpUrl, iss: ORIGIN, device: flow.device.id });
    const record = await findGrant(env.DB, claims?.grant ?? "");
    expect(record?.grant).toMatchObject({ label: "Test Client", member: claims?.sub, rights: { tools: ["screenshot"] }, pausedAt: null });
    expect(claims?.sub).toMatch(/^[0-9a-f]{32}$/);
    const told = flow.relay.objects.notes.find((note) => note.method === "putGrant");
    expect(told).toMatchObject({ id: flow.device.id, argument: { id: claims?.grant } });
  });

  test("asks somebody who is not signed in to sign in, and comes back to the same request", async () => {
    const flow = await startFlow();
    const path = authorizePath(flow, await publicClient(flow.relay), await pkce());
    const response = await browser(flow.relay).get(path);
    expect(response.status).toBe(303);
    const target = new URL(response.headers.get("location") ?? "", ORIGIN);
    expect(target.pathname).toBe("/sign-in");
    expect(new URL(target.searchParams.get("next") ?? "", ORIGIN).searchParams).toEqual(new URL(path, ORIGIN).searchParams);
  });

  test("says no to the client when the person declines", async () => {
    const flow = await startFlow();
    const back = await decide(flow, flow.owner, authorizePath(flow, await publicClient(flow.relay), await pkce()), { decision: "deny" });
    expect(Object.fromEntries(back.searchParams)).toMatchObject({ error: "access_denied", state: "s t&=#", iss: ORIGIN });
    expect(back.searchParams.has("code")).toBe(false);
  });

  test("works for a client with a metadata document, on any loopback port", async () => {
    const flow = await startFlow();
    const clientId = "https://client.test/good.json";
    const redirect = "http://127.0.0.1:40123/callback";
    const pair = await pkce();
    const path = authorizePath(flow, clientId, pair, { redirect_uri: redirect });
    const page = await (await flow.owner.get(path)).text();
    expect(page).toContain("Document Client");
    expect(page).toContain("published by client.test");
    expect(page).toContain("127.0.0.1:40123");
    expect(page).toContain("Any program there could be listening");
    const back = await decide(flow, flow.owner, path);
    const response = await redeem(flow, clientId, back.searchParams.get("code") ?? "", pair, { redirect_uri: redirect });
    expect(response.status).toBe(200);
  });

  test("works for Cursor's scheme, and says where the code goes", async () => {
    const flow = await startFlow();
    const redirect = "cursor://anysphere.cursor-mcp/oauth/callback";
    const clientId = await publicClient(flow.relay, { redirect_uris: [redirect] });
    const page = await flow.owner.get(authorizePath(flow, clientId, await pkce(), { redirect_uri: redirect }));
    expect(page.headers.get("content-security-policy")).toContain("form-action 'self' cursor:;");
    expect(await page.text()).toContain("Any installed application could have claimed them");
    const tokens = await connect(flow, clientId, {}, { redirect_uri: redirect });
    expect(tokens.token_type).toBe("Bearer");
  });

  test("proves a confidential client", async () => {
    const flow = await startFlow();
    const registered = await register(flow.relay, { token_endpoint_auth_method: "client_secret_post" });
    const { client_id: clientId, client_secret: secret } = await registered.json<{ client_id: string; client_secret: string }>();
    const pair = await pkce();
    const back = await decide(flow, flow.owner, authorizePath(flow, clientId, pair));
    const code = back.searchParams.get("code") ?? "";
    expect((await redeem(flow, clientId, code, pair)).status).toBe(401);
    expect((await redeem(flow, clientId, code, pair, { client_secret: "wrong" })).status).toBe(401);
    expect((await redeem(flow, clientId, code, pair, { client_secret: secret })).status).toBe(200);
  });

  test("a token lives no longer than its grant", async () => {
    const flow = await startFlow();
    const clientId = await publicClient(flow.relay);
    const tokens = await connect(flow, clientId, { fields: [] });
    const { grant } = decodeJwt<{ grant: string }>(tokens.access_token);
    await env.DB.prepare("UPDATE grants SET expires_at = ? WHERE id = ?")
      .bind(Math.ceil(Date.now() / 1000) * 1000 + 120_000, grant)
      .run();
    const response = await refresh(flow, clientId, tokens.refresh_token);
    expect(response.status).toBe(200);
    const { expires_in: life, access_token: fresh } = await response.json<{ expires_in: number; access_token: string }>();
    expect(life).toBeLessThanOrEqual(120);
    expect((decodeJwt(fresh).exp ?? 0) * 1000).toBeLessThanOrEqual(Date.now() + 121_000);
  });

  test("an unsupported grant type is refused", async () => {
    const flow = await startFlow();
    const clientId = await publicClient(flow.relay);
    const response = await token(flow.relay, { grant_type: "password", client_id: clientId, resource: flow.device.mcpUrl });
    expect(response.status).toBe(400);
    expect(await oauthErrorOf(response)).toBe("unsupported_grant_type");
  });
});
