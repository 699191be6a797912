/** Invitations, set-up links, members and owner tokens: what each opens, once, and what taking it back ends. */
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { onMemberRemoved } from "../../src/auth/remove-member.ts";
import { findGrant } from "../../src/db/grants.ts";
import { listInvitationsOf } from "../../src/db/invitations.ts";
import { addDevice, addToken, dial, errorCode, memberWithToken, type Relay, startRelay, tokenFor } from "./api-support.ts";
import { browser, signedIn } from "./web-support.ts";

interface Invited {
  invitation: string;
  link: string;
  code: string;
}

async function invite(relay: Relay, body: Record<string, unknown> = {}): Promise<Invited> {
  const response = await relay.asOwner("POST", "/api/invitations", { for: "Ada", ...body });
  expect(response.status).toBe(201);
  return response.json();
}

async function listed(relay: Relay, id: string): Promise<Record<string, unknown> | undefined> {
  const { invitations } = await (await relay.asOwner("GET", "/api/invitations")).json<{ invitations: Record<string, unknown>[] }>();
  return invitations.find((row) => row["invitation"] === id);
}

describe("an invitation", () => {
  it("carries its code in the fragment, and D1 knows only its hash", async () => {
    const relay = await startRelay();
    const { link, code } = await invite(relay);
    expect(link).toBe(`https://relay.test/join#${code}`);
    expect(code).toMatch(/^lli_[A-Za-z0-9_-]{43}$/);
    const { results } = await env.DB.prepare("SELECT * FROM invitations").all();
    expect(JSON.stringify(results)).not.toContain(code);
  });

  it("is not used up by looking: not by a GET, not by a preview that runs scripts and posts, only by its button", async () => {
    const relay = await startRelay();
    const { device, id } = await addDevice(relay);
    const { invitation, code } = await invite(relay, { device, tools: ["screenshot"], grantMs: 3_600_000 });
    const preview = browser(relay);
    expect((await preview.get("/join")).status).toBe(200);
    expect((await preview.get(`/join?code=${code}`)).status).toBe(200);
    const shown = await preview.post("/join", { code, next: "/account" });
    expect(shown.status).toBe(200);
    expect(await shown.text()).toContain("screenshot");
    expect(await listed(relay, invitation)).toMatchObject({ state: "open" });

    const person = browser(relay);
    const taken = await person.post("/join/accept", { code, name: "Ada", next: "/account" });
    expect([taken.status, taken.headers.get("location")]).toEqual([303, "/account"]);
    expect(await listed(relay, invitation)).toMatchObject({ state: "taken", takenName: "Ada", takenAt: expect.any(Number) });
    const page = await (await person.get("/account")).text();
    expect(page).toContain("Ada");
    expect(page).toContain(`https://relay.test/mcp/${device}`);
    const member = (await listed(relay, invitation))?.["takenBy"];
    expect(await listInvitationsOf(env.DB, String(member), 10)).toMatchObject([
      { device: { id }, rights: { tools: ["screenshot"] }, grantMs: 3_600_000 },
    ]);
  });

  it("is taken once, also by two at the same time", async () => {
    const relay = await startRelay();
    const { code } = await invite(relay);
    const before = await env.DB.prepare("SELECT COUNT(*) AS n FROM members").first<number>("n");
    const answers = await Promise.all(["Ada", "Eve"].map((name) => browser(relay).post("/join/accept", { code, name, next: "/" })));
    expect(answers.map((answer) => answer.status).toSorted((a, b) => a - b)).toEqual([303, 401]);
    expect(await env.DB.prepare("SELECT COUNT(*) AS n FROM members").first<number>("n")).toBe((before ?? 0) + 1);
    expect((await browser(relay).post("/join", { code, next: "/" })).status).toBe(401);
  });

  it("does not open once it was revoked, has expired, or its device is gone", async () => {
    const relay = await startRelay();
    const { device } = await addDevice(relay);
    const revoked = await invite(relay);
    await relay.asOwner("DELETE", `/api/invitations/${revoked.invitation}`);
    const expired = await invite(relay, { expiresMs: 1 });
    await env.DB.prepare("UPDATE invitations SET expires_at = 1 WHERE id = ?").bind(expired.invitation).run();
    const orphan = await invite(relay, { device });
    await relay.asOwner("DELETE", `/api/devices/${device}`);
    for (const { code } of [revoked, expired, orphan])
      expect((await browser(relay).post("/join/accept", { code, name: "Ada", next: "/" })).status).toBe(401);
  });

  it("is taken by a person who is signed in without making a second one, and raises nobody to owner", async () => {
    const relay = await startRelay();
    const { token, memberId } = await memberWithToken("member");
    const person = await signedIn(relay, token);
    const plain = await invite(relay);
    expect((await person.post("/join/accept", { code: plain.code, next: "/" })).status).toBe(303);
    expect(await listed(relay, plain.invitation)).toMatchObject({ takenBy: memberId });
    const owner = await invite(relay, { role: "owner" });
    expect((await person.post("/join/accept", { code: owner.code, next: "/" })).status).toBe(409);
    expect(await listed(relay, owner.invitation)).toMatchObject({ state: "open" });
  });

  it.each([null, "https://evil.example"])("is not taken by a form from %j", async (origin) => {
    const relay = await startRelay();
    const { code, invitation } = await invite(relay);
    expect((await browser(relay).post("/join/accept", { code, name: "Ada", next: "/" }, origin)).status).toBe(403);
    expect(await listed(relay, invitation)).toMatchObject({ state: "open" });
  });

  it.each([{}, { for: "" }, { for: "a", tools: ["x"] }, { for: "a", role: "admin" }, { for: "a", expiresMs: 0 }])(
    "refuses %j",
    async (body) => {
      const relay = await startRelay();
      expect((await relay.asOwner("POST", "/api/invitations", body)).status).toBe(400);
    },
  );

  it("shows foreign text as text", async () => {
    const relay = await startRelay();
    const { device } = await addDevice(relay);
    const { code } = await invite(relay, { device, tools: ["<img src=x onerror=alert(1)>"] });
    const page = await (await browser(relay).post("/join", { code, next: "/" })).text();
    expect(page).not.toContain("<img");
    expect(page).toContain("&lt;img");
  });
});

describe("a set-up link", () => {
  it("signs one browser in as its owner, once", async () => {
    const relay = await startRelay();
    const { link } = await (await relay.asOwner("POST", "/api/setup-links")).json<{ link: string }>();
    const code = link.split("#")[1] ?? "";
    const person = browser(relay);
    expect((await person.post("/join", { code, next: "/" })).status).toBe(200);
    expect((await person.post("/join/accept", { code, next: "/account" })).status).toBe(303);
    expect(await (await person.get("/account")).text()).toContain("(owner)");
    expect((await browser(relay).post("/join/accept", { code, next: "/" })).status).toBe(401);
  });
});

describe("removing a member", () => {
  it("ends sessions, tokens, invitations and every grant on all devices, and runs what else is registered", async () => {
    const relay = await startRelay();
    const devices = [await addDevice(relay), await addDevice(relay)];
    for (const { deviceKey } of devices) await dial(relay, deviceKey);
    const { token, memberId } = await memberWithToken("member");
    const grants = await Promise.all(devices.map(({ device }) => addToken(relay, device, { for: "Ada", member: memberId })));
    const person = await signedIn(relay, token);
    const { code } = await invite(relay, { device: devices[0]?.device });
    await person.post("/join/accept", { code, next: "/" });
    const removed: string[] = [];
    onMemberRemoved(async (_env, id) => {
      if (id === memberId) removed.push(id);
    });

    const response = await relay.asOwner("DELETE", `/api/members/${memberId}`);
    expect(await response.json()).toMatchObject({ removed: true, grantsRevoked: 2 });
    expect(removed).toEqual([memberId]);
    expect((await person.get("/console")).headers.get("location")).toContain("/sign-in");
    expect((await person.get("/account")).headers.get("location")).toContain("/sign-in");
    expect((await relay.send("/api/me", { headers: { Authorization: `Bearer ${token}` } })).status).toBe(401);
    for (const { grant } of grants) {
      expect((await findGrant(env.DB, grant))?.grant.revokedAt).toEqual(expect.any(Number));
      expect(relay.objects.notes.some((n) => n.method === "putGrant" && (n.argument as { revokedAt: unknown }).revokedAt !== null)).toBe(
        true,
      );
    }
    expect(await listInvitationsOf(env.DB, memberId, 10)).toEqual([]);
    expect((await relay.asOwner("DELETE", "/api/members/nobody")).status).toBe(404);
  });

  it("says when a device did not confirm, with the person locked out all the same", async () => {
    const relay = await startRelay();
    const { device, deviceKey } = await addDevice(relay);
    await dial(relay, deviceKey);
    const { token, memberId } = await memberWithToken("member");
    const { grant } = await addToken(relay, device, { for: "Ada", member: memberId });
    relay.objects.failing.add("putGrant");
    const failed = await relay.asOwner("DELETE", `/api/members/${memberId}`);
    expect([failed.status, await errorCode(failed)]).toEqual([502, "incomplete"]);
    expect((await relay.send("/api/me", { headers: { Authorization: `Bearer ${token}` } })).status).toBe(401);
    relay.objects.failing.clear();
    // What is left is finished by repeating the command.
    expect((await relay.asOwner("DELETE", `/api/members/${memberId}`)).status).toBe(200);
    expect((await findGrant(env.DB, grant))?.grant.revokedAt).toEqual(expect.any(Number));
  });

  it("keeps the last owner", async () => {
    const relay = await startRelay();
    await env.DB.prepare("UPDATE members SET removed_at = 1 WHERE role = 'owner'").run();
    const { token, memberId } = await memberWithToken("owner");
    const response = await relay.send(`/api/members/${memberId}`, { method: "DELETE", headers: { Authorization: `Bearer ${token}` } });
    expect(response.status).toBe(409);
    expect((await relay.send("/api/me", { headers: { Authorization: `Bearer ${token}` } })).status).toBe(200);
  });
});

describe("owner tokens", () => {
  it("are made once, listed without the secret, and revoked", async () => {
    const relay = await startRelay();
    const { ownerToken } = await (await relay.asOwner("POST", "/api/owner-tokens", { for: "laptop" })).json<{ ownerToken: string }>();
    const as = (): Promise<Response> => relay.send("/api/me", { headers: { Authorization: `Bearer ${ownerToken}` } });
    expect((await as()).status).toBe(200);
    const text = await (await relay.asOwner("GET", "/api/owner-tokens")).text();
    expect(text).not.toContain(ownerToken);
    const { tokens } = JSON.parse(text) as { tokens: { id: string; label: string }[] };
    const id = tokens.find((row) => row.label === "laptop")?.id ?? "";
    expect((await relay.asOwner("DELETE", `/api/owner-tokens/${id}`)).status).toBe(200);
    expect((await as()).status).toBe(401);
    expect((await relay.asOwner("DELETE", "/api/owner-tokens/%25")).status).toBe(404);
  });
});

describe("a signed-in browser", () => {
  it("reads the API with its cookie, and changes something only from a page of this relay", async () => {
    const relay = await startRelay();
    const person = await signedIn(relay, await tokenFor("owner"));
    const send = (headers: Record<string, string>): Promise<Response> =>
      relay.send("/api/owner-tokens", { method: "POST", headers: { Cookie: person.cookie, ...headers }, body: `{"for":"x"}` });
    expect((await relay.send("/api/me", { headers: { Cookie: person.cookie } })).status).toBe(200);
    expect((await send({})).status).toBe(403);
    expect((await send({ Origin: "null" })).status).toBe(403);
    expect((await send({ Origin: "https://relay.test" })).status).toBe(201);
  });

  it("revokes the person's own grants only, on their page", async () => {
    const relay = await startRelay();
    const { device } = await addDevice(relay);
    const { token, memberId } = await memberWithToken("member");
    const own = await addToken(relay, device, { for: "mine", member: memberId });
    const theirs = await addToken(relay, device, { for: "theirs" });
    const person = await signedIn(relay, token);
    expect((await person.post("/account/revoke", { grant: theirs.grant })).status).toBe(404);
    expect((await findGrant(env.DB, theirs.grant))?.grant.revokedAt).toBeNull();
    expect((await person.post("/account/revoke", { grant: own.grant })).status).toBe(303);
    expect((await findGrant(env.DB, own.grant))?.grant.revokedAt).toEqual(expect.any(Number));
  });
});
