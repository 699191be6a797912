import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { insertAuditRows, type NewAuditRow, sweepAudit } from "../../src/db/audit.ts";
import { randomId } from "../../src/auth/secrets.ts";
import { addDevice, addToken, dial, memberWithToken, startRelay, type Relay } from "./api-support.ts";

type Row = Record<string, unknown> & { seq: number };

async function put(row: Partial<NewAuditRow> = {}): Promise<string> {
  const id = row.id ?? randomId();
  await insertAuditRows(env.DB, [{ id, kind: "call", at: Date.now(), outcome: "ok", method: "tools/call", ...row }]).run();
  return id;
}

async function read(relay: Relay, query = "", token?: string): Promise<{ rows: Row[]; newest: number }> {
  const response =
    token === undefined
      ? await relay.asOwner("GET", `/api/audit${query}`)
      : await relay.send(`/api/audit${query}`, { headers: { Authorization: `Bearer ${token}` } });
  expect(response.status).toBe(200);
  return response.json();
}

describe("the audit", () => {
  it("is read newest first, filtered by device, grant, outcome and time, with a limit", async () => {
    const relay = await startRelay();
    const { device, id } = await addDevice(relay);
    const about = { deviceId: id, device };
    await put({ ...about, at: 1_000, grant: "g1", target: "old" });
    await put({ ...about, at: 2_000, grant: "g1", target: "middle", outcome: "failed", reason: "tunnel_lost" });
    await put({ ...about, at: 3_000, grant: "g2", target: "new" });
    const targets = async (query: string): Promise<unknown[]> =>
      (await read(relay, `?device=${device}${query}`)).rows.filter((row) => row["kind"] === "call").map((row) => row["target"]);
    expect(await targets("")).toEqual(["new", "middle", "old"]);
    expect(await targets("&grant=g1")).toEqual(["middle", "old"]);
    expect(await targets("&outcome=failed")).toEqual(["middle"]);
    expect(await targets("&since=2000")).toEqual(["new", "middle"]);
    expect((await read(relay, "?limit=1")).rows).toHaveLength(1);
  });

  it("is followed by number, in order of arrival", async () => {
    const relay = await startRelay();
    await put();
    const { newest } = await read(relay, "?limit=1");
    const late = await put({ at: 1 });
    const { rows, newest: next } = await read(relay, `?after=${newest}`);
    expect(rows.map((row) => row["callId"])).toContain(late);
    expect((await read(relay, `?after=${next}`)).rows).toEqual([]);
  });

  it.each(["?limit=0", "?limit=10001", "?limit=x", "?outcome=fine", "?since=-1", "?device="])("refuses %s", async (query) => {
    const relay = await startRelay();
    expect((await relay.asOwner("GET", `/api/audit${query}`)).status).toBeGreaterThanOrEqual(400);
  });

  it("shows a member the calls of their own grants and nothing else", async () => {
    const relay = await startRelay();
    const { token, memberId } = await memberWithToken("member");
    const mine = await put({ member: memberId });
    const theirs = await put({ member: "somebody" });
    const action = await put({ member: memberId, kind: "admin", method: "member.remove" });
    const { rows } = await read(relay, "?limit=1000", token);
    const ids = rows.map((row) => row["callId"]);
    expect(ids).toContain(mine);
    expect(ids).not.toContain(theirs);
    expect(ids).not.toContain(action);
  });

  it("records what the owner did, to what, and when it reached only one half", async () => {
    const relay = await startRelay();
    const { device, deviceKey } = await addDevice(relay);
    await dial(relay, deviceKey);
    const { grant } = await addToken(relay, device, { for: "Ada" });
    relay.objects.failing.add("putGrant");
    await relay.asOwner("DELETE", `/api/tokens/${grant}`);
    relay.objects.failing.clear();
    await relay.asOwner("DELETE", `/api/tokens/${grant}`);
    const { rows } = await read(relay, `?grant=${grant}`);
    expect(rows.map((row) => [row["method"], row["target"], row["outcome"], row["memberName"]])).toEqual([
      ["token.revoke", "Ada", "ok", "owner"],
      ["token.revoke", "Ada", "incomplete", "owner"],
      ["token.create", "Ada", "ok", "owner"],
    ]);
    expect(JSON.stringify(rows)).not.toMatch(/ll[ko]_|eyJ/);
  });

  it("never holds a row twice", async () => {
    const id = await put({ target: "first" });
    await put({ id, target: "second" });
    const { results } = await env.DB.prepare("SELECT target FROM audit WHERE id = ?").bind(id).all();
    expect(results).toEqual([{ target: "first" }]);
  });
});

describe("retention", () => {
  it("is a setting of days; older rows go, a bounded number at a time", async () => {
    const relay = await startRelay();
    const day = 86_400_000;
    const old = await put({ at: Date.now() - 31 * day });
    const young = await put({ at: Date.now() - 29 * day });
    await sweepAudit(env.DB, Date.now()).run();
    expect(await env.DB.prepare("SELECT 1 AS x FROM audit WHERE id = ?").bind(old).first()).not.toBeNull();
    const changed = await relay.asOwner("PATCH", "/api/settings", { auditDays: 30 });
    expect(await changed.json()).toEqual({ auditDays: 30 });
    await sweepAudit(env.DB, Date.now()).run();
    expect(await env.DB.prepare("SELECT 1 AS x FROM audit WHERE id = ?").bind(old).first()).toBeNull();
    expect(await env.DB.prepare("SELECT 1 AS x FROM audit WHERE id = ?").bind(young).first()).not.toBeNull();
  });

  it.each([{ auditDays: 0 }, { auditDays: 3_651 }, { auditDays: "30" }, { other: 1 }])("refuses %j", async (body) => {
    const relay = await startRelay();
    expect((await relay.asOwner("PATCH", "/api/settings", body)).status).toBe(400);
  });

  it("is the owner's alone", async () => {
    const relay = await startRelay();
    const { token } = await memberWithToken("member");
    const response = await relay.send("/api/settings", {
      method: "PATCH",
      headers: { Authorization: `Bearer ${token}` },
      body: `{"auditDays":1}`,
    });
    expect(response.status).toBe(403);
  });
});
