/** Refresh, rotation and revocation: what clients really do, and what a thief would try. */
import { env } from "cloudflare:workers";
import { decodeJwt } from "jose";
import { describe, expect, test } from "vitest";
import { findGrant } from "../../src/db/grants.ts";
import { connect, type Flow, oauthErrorOf, publicClient, redeem, refresh, startFlow, token, type Tokens } from "./oauth-support.ts";
import { authorizePath, decide, pkce } from "./oauth-support.ts";

function grantOf(tokens: Pick<Tokens, "access_token">): string {
  return decodeJwt<{ grant: string }>(tokens.access_token).grant;
}

async function isRevoked(grant: string): Promise<boolean> {
  return (await findGrant(env.DB, grant))?.grant.revokedAt !== null;
}

/** Lets the time pass in which a used refresh token gives its answer again. */
async function passTime(): Promise<void> {
  await env.DB.prepare("UPDATE oauth_uses SET used_at = used_at - 61000").run();
}

async function connected(): Promise<{ flow: Flow; clientId: string; tokens: Tokens }> {
  const flow = await startFlow();
  const clientId = await publicClient(flow.relay);
  return { flow, clientId, tokens: await connect(flow, clientId) };
}

describe("refreshing", () => {
  test("rotates the refresh token and keeps the grant", async () => {
    const { flow, clientId, tokens } = await connected();
    const response = await refresh(flow, clientId, tokens.refresh_token);
    expect(response.status).toBe(200);
    const next = await response.json<Tokens>();
    expect(next.refresh_token).not.toBe(tokens.refresh_token);
    expect(next.access_token).not.toBe(tokens.access_token);
    expect(grantOf(next)).toBe(grantOf(tokens));
    expect(next.resource).toBe(flow.device.mcpUrl);
  });

  test("works without a resource, which the refresh token is bound to", async () => {
    const { flow, clientId, tokens } = await connected();
    const response = await refresh(flow, clientId, tokens.refresh_token, { resource: undefined });
    expect(response.status).toBe(200);
  });

  test("in parallel leaves every one of them with tokens that work", async () => {
    const { flow, clientId, tokens } = await connected();
    const responses = await Promise.all(Array.from({ length: 5 }, () => refresh(flow, clientId, tokens.refresh_token)));
    expect(responses.map((response) => response.status)).toEqual([200, 200, 200, 200, 200]);
    const all = await Promise.all(responses.map((response) => response.json<Tokens>()));
    expect(new Set(all.map((one) => one.refresh_token)).size).toBe(1);
    for (const one of all) expect(grantOf(one)).toBe(grantOf(tokens));
    const next = await refresh(flow, clientId, all[3]?.refresh_token ?? "");
    expect(next.status).toBe(200);
  });

  test("a client that lost the answer may use the old token until the new one was used", async () => {
    const { flow, clientId, tokens } = await connected();
    expect((await refresh(flow, clientId, tokens.refresh_token)).status).toBe(200);
    await passTime();
    const again = await refresh(flow, clientId, tokens.refresh_token);
    expect(again.status).toBe(200);
    expect((await refresh(flow, clientId, (await again.json<Tokens>()).refresh_token)).status).toBe(200);
  });

  test("a token that comes back after its successor was used ends the grant", async () => {
    const { flow, clientId, tokens } = await connected();
    const second = await (await refresh(flow, clientId, tokens.refresh_token)).json<Tokens>();
    const third = await (await refresh(flow, clientId, second.refresh_token)).json<Tokens>();
    await passTime();
    const stolen = await refresh(flow, clientId, tokens.refresh_token);
    expect(stolen.status).toBe(400);
    expect(await oauthErrorOf(stolen)).toBe("invalid_grant");
    expect(await isRevoked(grantOf(tokens))).toBe(true);
    expect(await oauthErrorOf(await refresh(flow, clientId, third.refresh_token))).toBe("invalid_grant");
  });

  test("another client's refresh token is refused, also right after it was used", async () => {
    const { flow, clientId, tokens } = await connected();
    const other = await publicClient(flow.relay, { client_name: "Other" });
    expect(await oauthErrorOf(await refresh(flow, other, tokens.refresh_token))).toBe("invalid_grant");
    expect((await refresh(flow, clientId, tokens.refresh_token)).status).toBe(200);
    const copied = await refresh(flow, other, tokens.refresh_token);
    expect(copied.status).toBe(400);
    expect(await oauthErrorOf(copied)).toBe("invalid_grant");
    expect((await refresh(flow, "unknown-client", tokens.refresh_token)).status).toBe(401);
    expect(await isRevoked(grantOf(tokens))).toBe(false);
  });

  test("for another device is refused", async () => {
    const { flow, clientId, tokens } = await connected();
    const other = await startFlow();
    for (const resource of [other.device.mcpUrl, `${flow.device.mcpUrl}/`, "https://elsewhere.example/mcp/pi"]) {
      expect(await oauthErrorOf(await refresh(flow, clientId, tokens.refresh_token, { resource }))).toBe("invalid_target");
    }
    expect((await refresh(flow, clientId, tokens.refresh_token)).status).toBe(200);
    const same = await refresh(flow, clientId, tokens.refresh_token, { resource: other.device.mcpUrl });
    expect(await oauthErrorOf(same)).toBe("invalid_target");
  });

  test("a forged refresh token of a real authorization is refused and ends nothing", async () => {
    const { flow, clientId, tokens } = await connected();
    const [member, id] = tokens.refresh_token.split(":");
    const forged = `${member}:${id}:${"A".repeat(32)}`;
    for (let time = 0; time < 2; time++) expect(await oauthErrorOf(await refresh(flow, clientId, forged))).toBe("invalid_grant");
    expect((await refresh(flow, clientId, tokens.refresh_token)).status).toBe(200);
  });

  test.each([
    ["revoked", "revoked_at = 1"],
    ["expired", "expires_at = 1"],
  ])("under a grant that is %s is invalid_grant", async (_state, change) => {
    const { flow, clientId, tokens } = await connected();
    await env.DB.prepare(`UPDATE grants SET ${change} WHERE id = ?`).bind(grantOf(tokens)).run();
    const response = await refresh(flow, clientId, tokens.refresh_token);
    expect(response.status).toBe(400);
    expect(await oauthErrorOf(response)).toBe("invalid_grant");
  });

  test("under a paused grant is invalid_grant, and works again when it is resumed", async () => {
    const { flow, clientId, tokens } = await connected();
    await env.DB.prepare("UPDATE grants SET paused_at = 1 WHERE id = ?").bind(grantOf(tokens)).run();
    expect(await oauthErrorOf(await refresh(flow, clientId, tokens.refresh_token))).toBe("invalid_grant");
    await env.DB.prepare("UPDATE grants SET paused_at = NULL WHERE id = ?").bind(grantOf(tokens)).run();
    expect((await refresh(flow, clientId, tokens.refresh_token)).status).toBe(200);
  });

  test("for a renamed device works under both names, and no longer when the old one has run out", async () => {
    const { flow, clientId, tokens } = await connected();
    await env.DB.batch([
      env.DB.prepare("UPDATE devices SET name = name || '-new' WHERE id = ?").bind(flow.device.id),
      env.DB.prepare("INSERT INTO device_names (name, device_id, until) VALUES (?, ?, ?)").bind(
        flow.device.device,
        flow.device.id,
        Date.now() + 60_000,
      ),
    ]);
    const renamed = await refresh(flow, clientId, tokens.refresh_token);
    expect(renamed.status).toBe(200);
    const next = await renamed.json<Tokens>();
    expect(decodeJwt(next.access_token).aud).toBe(flow.device.mcpUrl);
    await env.DB.prepare("UPDATE device_names SET until = 1 WHERE name = ?").bind(flow.device.device).run();
    expect(await oauthErrorOf(await refresh(flow, clientId, next.refresh_token))).toBe("invalid_grant");
  });

  test("of a removed device is invalid_grant, even when a new one has its name", async () => {
    const { flow, clientId, tokens } = await connected();
    expect((await flow.relay.asOwner("DELETE", `/api/devices/${flow.device.device}`)).status).toBe(200);
    expect((await flow.relay.asOwner("POST", "/api/devices", { name: flow.device.device })).status).toBe(201);
    expect(await oauthErrorOf(await refresh(flow, clientId, tokens.refresh_token))).toBe("invalid_grant");
  });
});

describe("revoking", () => {
  test("`token revoke` ends the refresh token too", async () => {
    const { flow, clientId, tokens } = await connected();
    expect((await flow.relay.asOwner("DELETE", `/api/tokens/${grantOf(tokens)}`)).status).toBe(200);
    expect(await oauthErrorOf(await refresh(flow, clientId, tokens.refresh_token))).toBe("invalid_grant");
  });

  test("a refresh token at the revocation endpoint ends the grant, in record and object", async () => {
    const { flow, clientId, tokens } = await connected();
    const response = await token(flow.relay, { token: tokens.refresh_token, client_id: clientId }, "/oauth/revoke");
    expect(response.status).toBe(200);
    expect(await isRevoked(grantOf(tokens))).toBe(true);
    const { notes } = flow.relay.objects;
    expect(notes.filter((note) => note.method === "putGrant").at(-1)?.argument).toMatchObject({
      id: grantOf(tokens),
      revokedAt: expect.any(Number),
    });
  });

  test.each(["/oauth/revoke", "/oauth/token"])("one of our access tokens at %s ends the grant and the refresh token", async (path) => {
    const { flow, clientId, tokens } = await connected();
    const response = await token(flow.relay, { token: tokens.access_token, token_type_hint: "access_token", client_id: clientId }, path);
    expect(response.status).toBe(200);
    expect(await isRevoked(grantOf(tokens))).toBe(true);
    expect(await oauthErrorOf(await refresh(flow, clientId, tokens.refresh_token))).toBe("invalid_grant");
  });

  test("by another client changes nothing and says nothing", async () => {
    const { flow, clientId, tokens } = await connected();
    const other = await publicClient(flow.relay, { client_name: "Other" });
    for (const stolen of [tokens.access_token, tokens.refresh_token]) {
      const response = await token(flow.relay, { token: stolen, client_id: other }, "/oauth/revoke");
      expect(response.status).toBe(200);
      expect(await response.text()).toBe("");
    }
    expect(await isRevoked(grantOf(tokens))).toBe(false);
    expect((await token(flow.relay, { token: tokens.access_token, client_id: "nobody" }, "/oauth/revoke")).status).toBe(401);
    expect((await refresh(flow, clientId, tokens.refresh_token)).status).toBe(200);
  });

  test("nonsense is answered alike", async () => {
    const { flow, clientId } = await connected();
    for (const nonsense of ["x", "a:b:c", "a.b.c"]) {
      expect((await token(flow.relay, { token: nonsense, client_id: clientId }, "/oauth/revoke")).status).toBe(200);
    }
    expect((await token(flow.relay, { client_id: clientId }, "/oauth/revoke")).status).toBe(400);
  });

  test("says that it could not when the object does not confirm", async () => {
    const { flow, clientId, tokens } = await connected();
    flow.relay.objects.failing.add("putGrant");
    const response = await token(flow.relay, { token: tokens.refresh_token, client_id: clientId }, "/oauth/revoke");
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).not.toBeNull();
    flow.relay.objects.failing.clear();
    const before = flow.relay.objects.notes.length;
    expect((await token(flow.relay, { token: tokens.refresh_token, client_id: clientId }, "/oauth/revoke")).status).toBe(200);
    expect(flow.relay.objects.notes.slice(before)).toMatchObject([{ method: "putGrant", argument: { id: grantOf(tokens) } }]);
  });
});

test("the list of tokens tells what was given on the consent page from what was made by hand", async () => {
  const { flow } = await connected();
  await flow.relay.asOwner("POST", `/api/devices/${flow.device.device}/tokens`, { for: "by hand" });
  const { tokens } = await (await flow.relay.asOwner("GET", `/api/tokens?device=${flow.device.device}`)).json<{ tokens: object[] }>();
  expect(tokens).toHaveLength(2);
  expect(tokens).toContainEqual(expect.objectContaining({ for: "Test Client", kind: "oauth", client: "Test Client" }));
  expect(tokens).toContainEqual(expect.objectContaining({ for: "by hand", kind: "token", client: null }));
});

test("removing a member ends their refresh tokens and what is stored of them", async () => {
  const { flow, clientId, tokens } = await connected();
  const [memberId = ""] = tokens.refresh_token.split(":");
  expect((await env.OAUTH_KV.list({ prefix: `grant:${memberId}:` })).keys).toHaveLength(1);
  expect((await flow.relay.asOwner("DELETE", `/api/members/${memberId}`)).status).toBe(200);
  expect((await env.OAUTH_KV.list({ prefix: `grant:${memberId}:` })).keys).toEqual([]);
  expect(await isRevoked(grantOf(tokens))).toBe(true);
  expect(await oauthErrorOf(await refresh(flow, clientId, tokens.refresh_token))).toBe("invalid_grant");
});

test("what was allowed, revoked and used twice is in the audit", async () => {
  const { flow, clientId, tokens } = await connected();
  await token(flow.relay, { token: tokens.refresh_token, client_id: clientId }, "/oauth/revoke");
  const { results } = await env.DB.prepare("SELECT method, target, outcome FROM audit WHERE device_id = ? AND kind = 'admin' ORDER BY seq")
    .bind(flow.device.id)
    .all();
  expect(results.filter((row) => String(row["method"]).startsWith("oauth."))).toEqual([
    { method: "oauth.allow", target: "Test Client", outcome: "ok" },
    { method: "oauth.revoke", target: "Test Client", outcome: "ok" },
  ]);
});

describe("codes", () => {
  async function coded(): Promise<{ flow: Flow; clientId: string; code: string; pair: Awaited<ReturnType<typeof pkce>> }> {
    const flow = await startFlow();
    const clientId = await publicClient(flow.relay);
    const pair = await pkce();
    const back = await decide(flow, flow.owner, authorizePath(flow, clientId, pair));
    return { flow, clientId, pair, code: back.searchParams.get("code") ?? "" };
  }

  test("a code that is replayed ends what it was given", async () => {
    const { flow, clientId, code, pair } = await coded();
    const tokens = await (await redeem(flow, clientId, code, pair)).json<Tokens>();
    const replayed = await redeem(flow, clientId, code, pair);
    expect(replayed.status).toBe(400);
    expect(await oauthErrorOf(replayed)).toBe("invalid_grant");
    expect(await isRevoked(grantOf(tokens))).toBe(true);
    expect(await oauthErrorOf(await refresh(flow, clientId, tokens.refresh_token))).toBe("invalid_grant");
  });

  test("of two redemptions at the same moment at most one has tokens, and they end", async () => {
    const { flow, clientId, code, pair } = await coded();
    const responses = await Promise.all([redeem(flow, clientId, code, pair), redeem(flow, clientId, code, pair)]);
    expect(responses.filter((response) => response.status === 200).length).toBeLessThanOrEqual(1);
    const { results } = await env.DB.prepare("SELECT revoked_at FROM grants WHERE device_id = ?").bind(flow.device.id).all();
    expect(results).toEqual([{ revoked_at: expect.any(Number) }]);
  });

  test.each([
    ["no verifier", { code_verifier: undefined }, "invalid_request"],
    ["another verifier", { code_verifier: "b".repeat(43) }, "invalid_grant"],
    ["another redirect URI", { redirect_uri: "https://evil.example/" }, "invalid_grant"],
    ["another resource", { resource: "https://relay.test/mcp/other" }, "invalid_target"],
    ["another code", { code: "a:b:c" }, "invalid_grant"],
  ])("a code with %s is refused, and still good for its owner", async (_what, changes, error) => {
    const { flow, clientId, code, pair } = await coded();
    const response = await redeem(flow, clientId, code, pair, changes);
    expect(response.status).toBe(400);
    expect(await oauthErrorOf(response)).toBe(error);
    expect((await redeem(flow, clientId, code, pair)).status).toBe(200);
  });

  test("another client's code is refused", async () => {
    const { flow, clientId, code, pair } = await coded();
    const other = await publicClient(flow.relay, { client_name: "Other" });
    expect(await oauthErrorOf(await redeem(flow, other, code, pair))).toBe("invalid_grant");
    expect((await redeem(flow, clientId, code, pair)).status).toBe(200);
  });
});
