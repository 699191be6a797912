/** Pairing: a code, an owner's decision, one key; and what somebody tries who is neither. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import { normaliseUserCode } from "../../src/auth/pairing.ts";
import { readPairing } from "../../src/auth/pairing-object.ts";
import { forgetCounts } from "../../src/auth/rate-limit.ts";
import { PAIRING } from "../../src/limits.ts";
import { addDevice, dial, freshName, type Relay, startRelay, tokenFor } from "./api-support.ts";
import { browser, signedIn } from "./web-support.ts";

interface Started {
  deviceCode: string;
  userCode: string;
  screen: string;
  verificationUri: string;
  verificationUriComplete: string;
  expiresIn: number;
  interval: number;
}

beforeEach(async () => {
  forgetCounts();
  await env.DB.prepare("DELETE FROM pairings").run();
});

function post(relay: Relay, path: string, body: unknown): Promise<Response> {
  return relay.send(path, { method: "POST", body: JSON.stringify(body) });
}

async function start(relay: Relay, name = freshName(), host = "pi-über"): Promise<Started> {
  const response = await post(relay, "/pair/start", { host, system: "Linux 6.1", agentVersion: "0.1.0", name });
  expect(response.status).toBe(201);
  return response.json();
}

const claim = (relay: Relay, deviceCode: string): Promise<Response> => post(relay, "/pair/claim", { deviceCode });

async function problem(response: Response): Promise<unknown> {
  return [response.status, (await response.json<{ error: unknown }>()).error];
}

function wrongScreen(screen: string): string {
  return screen === "BB" ? "CC" : "BB";
}

describe("pairing", () => {
  it("goes from a code to one key that opens the device", async () => {
    const relay = await startRelay();
    const name = freshName();
    const started = await start(relay, name);
    expect(started).toMatchObject({ verificationUri: "https://relay.test/pair", expiresIn: 600, interval: 3 });
    expect(started.userCode).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    expect(started.verificationUriComplete).toBe(`https://relay.test/pair?code=${started.userCode}`);
    expect(await problem(await claim(relay, started.deviceCode))).toEqual([400, "authorization_pending"]);
    expect(await problem(await claim(relay, started.deviceCode))).toEqual([400, "slow_down"]);

    const owner = await signedIn(relay, await tokenFor("owner"));
    const page = await (await owner.get(`/pair?code=${started.userCode}`)).text();
    for (const shown of ["pi-über", "Linux 6.1", "0.1.0", name, "not known"]) expect(page).toContain(shown);
    expect(page).not.toContain(started.screen + "<");
    const approved = await owner.post("/pair", { code: started.userCode, name, screen: started.screen.toLowerCase(), decision: "approve" });
    expect(approved.status).toBe(200);

    const claimed = await claim(relay, started.deviceCode);
    const { deviceKey, device, mcpUrl } = await claimed.json<{ deviceKey: string; device: string; mcpUrl: string }>();
    expect({ device, mcpUrl }).toEqual({ device: name, mcpUrl: `https://relay.test/mcp/${name}` });
    expect((await dial(relay, deviceKey)).status).toBe(101);
    expect(await problem(await claim(relay, started.deviceCode))).toEqual([400, "expired_token"]);
  });

  it("gives its key to one of two that ask at the same time", async () => {
    const relay = await startRelay();
    const name = freshName();
    const { deviceCode, userCode, screen } = await start(relay, name);
    await relay.asOwner("POST", "/api/pairings/approve", { code: userCode, name, screen });
    const answers = await Promise.all([claim(relay, deviceCode), claim(relay, deviceCode), claim(relay, deviceCode)]);
    expect(answers.map((answer) => answer.status).toSorted((a, b) => a - b)).toEqual([200, 400, 400]);
    const keys = await env.DB.prepare("SELECT COUNT(*) AS n FROM device_keys k JOIN devices d ON d.id = k.device_id WHERE d.name = ?")
      .bind(name)
      .first<number>("n");
    expect(keys).toBe(1);
  });

  it("is approved on the command line, under another name, after a look at what the device says", async () => {
    const relay = await startRelay();
    const { userCode, deviceCode, screen } = await start(relay);
    const name = freshName();
    const looked = await relay.asOwner("POST", "/api/pairings/look", { code: userCode.toLowerCase().replace("-", " ") });
    expect(await looked.json()).toMatchObject({ host: "pi-über", system: "Linux 6.1", address: null });
    expect((await relay.asOwner("POST", "/api/pairings/approve", { code: userCode, name, screen })).status).toBe(200);
    expect(await (await claim(relay, deviceCode)).json()).toMatchObject({ device: name });
  });

  it("can be refused", async () => {
    const relay = await startRelay();
    const { userCode, deviceCode } = await start(relay);
    const owner = await signedIn(relay, await tokenFor("owner"));
    expect((await owner.post("/pair", { code: userCode, decision: "deny" })).status).toBe(200);
    expect(await problem(await claim(relay, deviceCode))).toEqual([400, "access_denied"]);
  });

  it("gives an existing device a new key only when that is said, and the old key lives until the new one is used", async () => {
    const relay = await startRelay();
    const { device, deviceKey } = await addDevice(relay);
    const { userCode, deviceCode, screen } = await start(relay, device);
    const approval = { code: userCode, name: device, screen };
    expect((await relay.asOwner("POST", "/api/pairings/approve", approval)).status).toBe(409);
    expect((await relay.asOwner("POST", "/api/pairings/approve", { ...approval, replace: true })).status).toBe(200);
    const claimed = await (await claim(relay, deviceCode)).json<{ deviceKey: string }>();
    expect((await dial(relay, deviceKey)).status).toBe(101);
    expect((await dial(relay, claimed.deviceKey)).status).toBe(101);
    expect((await dial(relay, deviceKey)).status).toBe(401);
  });

  it("says when another device took the name between approval and claim", async () => {
    const relay = await startRelay();
    const name = freshName();
    const { userCode, deviceCode, screen } = await start(relay, name);
    await relay.asOwner("POST", "/api/pairings/approve", { code: userCode, name, screen });
    await addDevice(relay, name);
    expect(await problem(await claim(relay, deviceCode))).toEqual([400, "name_taken"]);
  });
});

describe("somebody who guesses", () => {
  it("has five tries at the screen's characters; then the code is dead for everybody", async () => {
    const relay = await startRelay();
    const name = freshName();
    const { userCode, deviceCode, screen } = await start(relay, name);
    const tries = async (characters: string): Promise<number> =>
      (await relay.asOwner("POST", "/api/pairings/approve", { code: userCode, name, screen: characters })).status;
    for (let i = 0; i < PAIRING.wrongTries; i++) expect(await tries(wrongScreen(screen))).toBe(403);
    expect(await tries(screen)).toBe(404);
    expect(await problem(await claim(relay, deviceCode))).toEqual([400, "access_denied"]);
  });

  it("has no more of them by asking at the same time", async () => {
    const relay = await startRelay();
    const name = freshName();
    const { userCode, screen } = await start(relay, name);
    const tries = async (characters: string): Promise<number> =>
      (await relay.asOwner("POST", "/api/pairings/approve", { code: userCode, name, screen: characters })).status;
    const answers = await Promise.all(Array.from({ length: 4 * PAIRING.wrongTries }, () => tries(wrongScreen(screen))));
    for (const status of answers) expect([403, 404]).toContain(status);
    expect(await tries(screen)).toBe(404);
    expect(await env.DB.prepare("SELECT approved_at FROM pairings").first()).toEqual({ approved_at: null });
  });

  it("sees nothing without being signed in, and approves nothing as a member or from another site", async () => {
    const relay = await startRelay();
    const { userCode, deviceCode, screen } = await start(relay);
    const stranger = browser(relay);
    const sent = await stranger.get(`/pair?code=${userCode}`);
    expect([sent.status, sent.headers.get("location")]).toEqual([303, `/sign-in?next=%2Fpair%3Fcode%3D${userCode}`]);
    const form = { code: userCode, name: freshName(), screen, decision: "approve" };
    const member = await signedIn(relay, await tokenFor("member"));
    expect((await member.get(`/pair?code=${userCode}`)).status).toBe(403);
    expect((await member.post("/pair", form)).status).toBe(403);
    const owner = await signedIn(relay, await tokenFor("owner"));
    expect((await owner.post("/pair", form, "https://evil.example")).status).toBe(403);
    expect((await owner.post("/pair", form, null)).status).toBe(403);
    expect(await problem(await claim(relay, deviceCode))).toEqual([400, "authorization_pending"]);
  });

  it("changes nothing by opening the link, and gets nothing with a made-up device code", async () => {
    const relay = await startRelay();
    const { userCode, deviceCode } = await start(relay);
    const owner = await signedIn(relay, await tokenFor("owner"));
    await owner.get(`/pair?code=${userCode}`);
    expect(await problem(await claim(relay, deviceCode))).toEqual([400, "authorization_pending"]);
    for (const code of ["", "llp_x", `llp_${"A".repeat(43)}`, "../do/set/record"])
      expect(await problem(await claim(relay, code))).toEqual([400, "expired_token"]);
  });

  it("finds no code after ten minutes", async () => {
    const relay = await startRelay();
    const { userCode, deviceCode } = await start(relay);
    await env.DB.prepare("UPDATE pairings SET expires_at = ?").bind(Date.now()).run();
    expect(await problem(await claim(relay, deviceCode))).toEqual([400, "expired_token"]);
    expect((await relay.asOwner("POST", "/api/pairings/look", { code: userCode })).status).toBe(404);
  });

  it("cannot let more than twenty devices wait", async () => {
    const relay = await startRelay();
    for (let i = 0; i < PAIRING.pending; i++) await start(relay);
    const refused = await post(relay, "/pair/start", { host: "h", system: "s", agentVersion: "v", name: "n" });
    expect(refused.status).toBe(429);
    expect(refused.headers.get("retry-after")).toBe("60");
    await env.DB.prepare("UPDATE pairings SET expires_at = 1 WHERE rowid = (SELECT MIN(rowid) FROM pairings)").run();
    expect((await post(relay, "/pair/start", { host: "h", system: "s", agentVersion: "v", name: "n" })).status).toBe(201);
  });

  it.each([{}, { host: "h", system: "s", agentVersion: "v", name: "n", id: "x" }, { host: 7, system: "s", agentVersion: "v", name: "n" }])(
    "is refused with %j",
    async (body) => {
      const relay = await startRelay();
      expect((await post(relay, "/pair/start", body)).status).toBe(400);
    },
  );

  it("shows what a device says as text", async () => {
    const relay = await startRelay();
    const { userCode } = await start(relay, "pi", "<script>alert(1)</script>\u001b[31m\u202e");
    const owner = await signedIn(relay, await tokenFor("owner"));
    const page = await (await owner.get(`/pair?code=${userCode}`)).text();
    for (const unsafe of ["<script>alert", "\u001b", "\u202e"]) expect(page).not.toContain(unsafe);
  });

  it("keeps no code in D1 as such", async () => {
    const relay = await startRelay();
    const { userCode, deviceCode } = await start(relay);
    const { results } = await env.DB.prepare("SELECT * FROM pairings").all();
    expect(JSON.stringify(results)).not.toContain(deviceCode);
    expect(JSON.stringify(results)).not.toContain(normaliseUserCode(userCode));
  });
});

describe("the Pairing object", () => {
  async function opened() {
    const relay = await startRelay();
    await start(relay);
    const id = (await env.DB.prepare("SELECT id FROM pairings").first<string>("id")) ?? "";
    return { id, stub: env.PAIRING.getByName(id) };
  }

  it.each([
    "/do/set/record",
    "/do/get-prop/record",
    "/do/get-prop/state",
    "/do/call/destroy",
    "/do/call/persist",
    "/do/call/setAlarm",
    "/do/call/loadFromStorage",
    "/do/call/constructor",
    "/do/call/__proto__",
    "/do/call/read/x",
    "/",
  ])("answers %s with 404", async (path) => {
    const { id, stub } = await opened();
    const response = await stub.fetch(`https://object${path}`, { headers: { "do-content": `["x"]` } });
    expect(response.status).toBe(404);
    expect(await readPairing(env, id)).toMatchObject({ system: "Linux 6.1" });
  });

  it("remembers its record when it is woken, and leaves nothing behind when its time is over, also twice", async () => {
    const { id, stub } = await opened();
    expect(await readPairing(env, id)).toMatchObject({ host: "pi-über" });
    for (let i = 0; i < 2; i++) {
      await runInDurableObject(stub, async (_object, state) => {
        await state.storage.setAlarm(Date.now() + 60_000);
      });
      await runDurableObjectAlarm(stub);
    }
    expect(await readPairing(env, id)).toBeNull();
    const left = await runInDurableObject(stub, async (_object, state) => (await state.storage.list()).size);
    expect(left).toBe(0);
  });
});
