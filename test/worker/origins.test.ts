/** The list of origins in D1, around the configured ones. */
import { describe, expect, it } from "vitest";
import { addDevice, addToken, startRelay } from "./api-support.ts";
import { verifyAccessToken } from "../../src/auth/access-token.ts";

const CONFIGURED = ["https://relay.test", "http://localhost:8787"];

describe("an added origin", () => {
  it("is answered at, also for tokens and pages, until it is removed", async () => {
    const relay = await startRelay();
    const at = (origin: string, init: RequestInit = {}): Promise<number> => relay.send(`${origin}/health`, init).then((r) => r.status);
    expect(await at("https://tools.test")).toBe(421);
    const added = await relay.asOwner("POST", "/api/origins", { origin: "https://tools.test" });
    const { origins } = await added.json<{ origins: { origin: string; canonical: boolean }[] }>();
    expect(origins.map((row) => row.origin)).toEqual([...CONFIGURED, "https://tools.test"]);
    expect(await at("https://tools.test")).toBe(200);
    expect(await at("https://relay.test", { headers: { Origin: "https://tools.test" } })).toBe(200);
    await relay.asOwner("POST", "/api/origins/remove", { origin: "https://tools.test" });
    expect(await at("https://tools.test")).toBe(421);
  });

  it("in front of all is canonical: new tokens name it, old ones still open", async () => {
    const relay = await startRelay();
    const { device } = await addDevice(relay);
    const before = await addToken(relay, device);
    await relay.asOwner("POST", "/api/origins", { origin: "https://first.test", first: true });
    const after = await addToken(relay, device);
    expect(after.mcpUrl).toBe(`https://first.test/mcp/${device}`);
    expect(await verifyAccessToken(relay.env, after.token)).toMatchObject({ iss: "https://first.test" });
    expect(await verifyAccessToken(relay.env, before.token)).toMatchObject({ iss: "https://relay.test" });
    await relay.asOwner("POST", "/api/origins/remove", { origin: "https://first.test" });
  });

  it.each([
    "tools.test",
    "https://tools.test/",
    "https://tools.test/path",
    "ftp://tools.test",
    "javascript:0",
    "https://u:p@tools.test",
    "",
  ])("cannot be %j", async (origin) => {
    const relay = await startRelay();
    expect((await relay.asOwner("POST", "/api/origins", { origin })).status).toBe(400);
  });

  it("cannot take away a configured one", async () => {
    const relay = await startRelay();
    expect((await relay.asOwner("POST", "/api/origins/remove", { origin: "https://relay.test" })).status).toBe(404);
  });
});
