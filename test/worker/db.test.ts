import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { randomId } from "../../src/auth/secrets.ts";
import { findKeyHolder } from "../../src/db/device-keys.ts";
import { findDevice, findDeviceByName, insertDevice, listDevices, markBorn, recordPresence, removeDevice } from "../../src/db/devices.ts";
import { findGrant, grantsSince, insertGrant, listGrants, revokeGrant } from "../../src/db/grants.ts";
import { findMember, insertMember } from "../../src/db/members.ts";
import { DEFAULT_CAPS, Grant } from "../../src/policy/grant.ts";

const { DB } = env;

async function newDevice(name = `d${randomId()}`): Promise<{ id: string; name: string; keyHash: string }> {
  const device = { id: randomId(), name, keyHash: randomId() };
  if (!(await insertDevice(DB, { ...device, createdAt: 10 }))) throw new Error(`${name} is taken`);
  return device;
}

async function newMember(): Promise<string> {
  const id = randomId();
  await insertMember(DB, { id, name: "Ada", role: "owner", createdAt: 1 });
  return id;
}

async function newGrant(deviceId: string, label = "x") {
  const grant = { id: randomId(), label, member: await newMember(), rights: { tools: ["a*"] }, caps: DEFAULT_CAPS, expiresAt: 1000 };
  return insertGrant(DB, deviceId, grant, 5);
}

describe("devices", () => {
  it("have one holder of a name at a time; removal frees it and ends key and grants", async () => {
    const first = await newDevice();
    const grant = await newGrant(first.id);
    expect(await insertDevice(DB, { id: randomId(), name: first.name, keyHash: randomId(), createdAt: 11 })).toBe(false);
    await removeDevice(DB, first.id, 20);
    expect(await findDevice(DB, first.id)).toBeNull();
    expect(await findKeyHolder(DB, first.keyHash, 20)).toBeNull();
    expect(await findGrant(DB, grant?.id ?? "")).toBeNull();
    expect(await grantsSince(DB, first.id, grant?.revision ?? 0)).toMatchObject([{ revokedAt: 20 }]);
    const second = await newDevice(first.name);
    expect((await findDeviceByName(DB, first.name))?.id).toBe(second.id);
    expect((await listDevices(DB, 1000)).filter((d) => d.name === first.name)).toHaveLength(1);
  });

  it("are born once", async () => {
    const { id } = await newDevice();
    expect((await findDevice(DB, id))?.bornAt).toBeNull();
    await markBorn(DB, id, 30);
    await markBorn(DB, id, 40);
    expect((await findDevice(DB, id))?.bornAt).toBe(30);
  });

  it("keep the presence of the newest generation", async () => {
    const { id } = await newDevice();
    const write = async (generation: number, online: boolean, lastSeenAt: number) => {
      await recordPresence(DB, id, { generation, online, lastSeenAt });
      const device = await findDevice(DB, id);
      return [device?.generation, device?.online, device?.lastSeenAt];
    };
    expect(await write(1, true, 100)).toEqual([1, true, 100]);
    expect(await write(2, true, 200)).toEqual([2, true, 200]);
    expect(await write(1, false, 300)).toEqual([2, true, 200]);
    expect(await write(2, true, 250)).toEqual([2, true, 250]);
    expect(await write(2, false, 240)).toEqual([2, false, 250]);
    expect(await write(2, true, 400)).toEqual([2, false, 250]);
    expect(await write(3, true, 500)).toEqual([3, true, 500]);
  });

  it("keep the agent's version when a write does not name one", async () => {
    const { id } = await newDevice();
    await recordPresence(DB, id, { generation: 1, online: true, lastSeenAt: 1, agentVersion: "1.2.3" });
    await recordPresence(DB, id, { generation: 1, online: false, lastSeenAt: 2 });
    expect((await findDevice(DB, id))?.agentVersion).toBe("1.2.3");
  });
});

describe("device keys", () => {
  it("open their device until they expire or are revoked", async () => {
    const { id, name, keyHash } = await newDevice();
    expect(await findKeyHolder(DB, keyHash, 50)).toMatchObject({ deviceId: id, name, bornAt: null });
    await DB.prepare("UPDATE device_keys SET expires_at = 60 WHERE hash = ?").bind(keyHash).run();
    expect(await findKeyHolder(DB, keyHash, 59)).not.toBeNull();
    expect(await findKeyHolder(DB, keyHash, 60)).toBeNull();
    await DB.prepare("UPDATE device_keys SET expires_at = NULL, revoked_at = 1 WHERE hash = ?").bind(keyHash).run();
    expect(await findKeyHolder(DB, keyHash, 50)).toBeNull();
    expect((await findDevice(DB, id))?.hasKey).toBe(false);
  });
});

describe("grants", () => {
  it("carry a revision that grows with every change of their device, and with no other's", async () => {
    const [one, other] = [await newDevice(), await newDevice()];
    const first = await newGrant(one.id, "first");
    await newGrant(other.id);
    const second = await newGrant(one.id, "second");
    expect([first?.revision, second?.revision]).toEqual([1, 2]);
    await revokeGrant(DB, one.id, first?.id ?? "", 77);
    const changed = await grantsSince(DB, one.id, 2);
    expect(changed).toMatchObject([{ id: first?.id, revision: 3, revokedAt: 77 }]);
    expect((await findDevice(DB, one.id))?.grantRevision).toBe(3);
    expect((await findDevice(DB, other.id))?.grantRevision).toBe(1);
  });

  it("come out as the object's copy wants them, all of them from revision 0, in order", async () => {
    const { id } = await newDevice();
    const made = [await newGrant(id), await newGrant(id), await newGrant(id)];
    const pulled = await grantsSince(DB, id, 0);
    expect(pulled).toEqual(made);
    for (const grant of pulled) expect(Grant.parse(grant)).toEqual(grant);
    expect(await grantsSince(DB, id, 3)).toEqual([]);
  });

  it("keep the time of their first revocation", async () => {
    const { id } = await newDevice();
    const grant = await newGrant(id);
    await revokeGrant(DB, id, grant?.id ?? "", 5);
    await revokeGrant(DB, id, grant?.id ?? "", 9);
    expect((await findGrant(DB, grant?.id ?? ""))?.grant.revokedAt).toBe(5);
  });

  it("are not added to a removed device, and not revoked by way of another", async () => {
    const [gone, other] = [await newDevice(), await newDevice()];
    const grant = await newGrant(other.id);
    await removeDevice(DB, gone.id, 1);
    expect(await newGrant(gone.id)).toBeNull();
    await revokeGrant(DB, gone.id, grant?.id ?? "", 5);
    expect((await findGrant(DB, grant?.id ?? ""))?.grant.revokedAt).toBeNull();
  });

  it("are listed for one device or for all, newest first, up to the limit", async () => {
    const { id } = await newDevice();
    const [first, second] = [await newGrant(id), await newGrant(id)];
    await DB.prepare("UPDATE grants SET created_at = 9999 WHERE id = ?").bind(second?.id).run();
    expect((await listGrants(DB, id, 10)).map((r) => r.grant.id)).toEqual([second?.id, first?.id]);
    expect((await listGrants(DB, undefined, 1)).map((r) => r.grant.id)).toEqual([second?.id]);
  });
});

it("finds a member by id", async () => {
  const id = await newMember();
  expect(await findMember(DB, id)).toEqual({ id, name: "Ada", role: "owner", createdAt: 1 });
  expect(await findMember(DB, "nobody")).toBeNull();
});
