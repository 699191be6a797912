/**
 * Pairing as in RFC 8628: a device shows a code, its owner approves it, the device fetches its key once. The decision and
 * the key are rows of D1; the object only remembers what the device said of itself.
 */
import type { z } from "zod";
import { findDeviceByName, type Device } from "../db/devices.ts";
import {
  approvePairing,
  claimPairing,
  countWrongTry,
  denyPairing,
  findByDeviceCode,
  findByUserCode,
  insertPairing,
  markPolled,
  type PairingRow,
} from "../db/pairings.ts";
import { configOf, type Env } from "../env.ts";
import { ApiError } from "../errors.ts";
import { DEVICE, PAIRING } from "../limits.ts";
import { log } from "../log.ts";
import { DeviceName } from "../policy/device-name.ts";
import { addressGroup } from "./address.ts";
import { nameTaken } from "./change-device.ts";
import { mcpUrl } from "./origins.ts";
import { closePairing, openPairing, PairingFacts, readPairing } from "./pairing-object.ts";
import { constantTimeEqual, hashSecret, mintDeviceKey, randomId, randomSecret } from "./secrets.ts";

// RFC 8628 §6.1: no vowels, so that no words appear; nothing that is read as something else.
const LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const USER_CODE = new RegExp(`^[${LETTERS}]+$`);
const DEVICE_CODE = /^llp_[A-Za-z0-9_-]{43}$/;
/** The page where a code is approved. */
export const PAIR_PATH = "/pair";

/** What a device sends to start; foreign text. */
export const PairingRequest = PairingFacts.omit({ address: true });
export type PairingRequest = z.infer<typeof PairingRequest>;

function randomLetters(count: number): string {
  let text = "";
  while (text.length < count) {
    // Bytes above the largest multiple of 20 are drawn again, so that every letter is as likely.
    const [byte = 255] = crypto.getRandomValues(new Uint8Array(1));
    if (byte < 240) text += LETTERS[byte % LETTERS.length] ?? "";
  }
  return text;
}

/** A user code as it was typed, in the form that is hashed; null when it can be none. */
export function normaliseUserCode(text: string): string | null {
  const letters = text.toUpperCase().replaceAll(/[\s-]/g, "");
  return letters.length === PAIRING.codeLength && USER_CODE.test(letters) ? letters : null;
}

/** Starts a pairing. `too_many` when PAIRING.pending devices wait already, or PAIRING.pendingPerAddress of this address. */
export async function startPairing(env: Env, request: PairingRequest, address: string | undefined) {
  const id = randomId();
  const deviceCode = `llp_${randomSecret()}`;
  const letters = randomLetters(PAIRING.codeLength);
  const screen = randomLetters(PAIRING.screenLength);
  const createdAt = Date.now();
  const expiresAt = createdAt + PAIRING.lifeMs;
  const [deviceHash, userHash] = await Promise.all([hashSecret(deviceCode), hashSecret(letters)]);
  const source = address === undefined ? null : addressGroup(address);
  const max = { pending: PAIRING.pending, pendingPerSource: PAIRING.pendingPerAddress };
  const isTaken = await insertPairing(env.DB, { id, deviceHash, userHash, screen, createdAt, expiresAt, source }, max);
  if (!isTaken) throw new ApiError("too_many", "Too many devices wait to be paired. Try again in a few minutes.");
  await openPairing(env, id, { ...request, address: address ?? null }, expiresAt);
  const userCode = `${letters.slice(0, PAIRING.codeLength / 2)}-${letters.slice(PAIRING.codeLength / 2)}`;
  const uri = `${configOf(env).origins[0] ?? ""}${PAIR_PATH}`;
  return {
    deviceCode,
    userCode,
    screen,
    verificationUri: uri,
    // RFC 8628 §3.3.1. The user code alone opens nothing: somebody who is signed in has to repeat the screen's characters.
    verificationUriComplete: `${uri}?code=${userCode}`,
    expiresIn: PAIRING.lifeMs / 1000,
    interval: PAIRING.pollMs / 1000,
  };
}

/** A pairing that waits for a decision, with what its device says of itself. */
export interface Waiting {
  row: PairingRow;
  facts: PairingFacts;
}

/** The waiting pairing of a user code, or null. For signed-in owners only. */
export async function lookUpPairing(env: Env, code: string): Promise<Waiting | null> {
  const letters = normaliseUserCode(code);
  const row = letters === null ? null : await findByUserCode(env.DB, await hashSecret(letters), Date.now());
  const facts = row === null ? null : await readPairing(env, row.id);
  return row === null || facts === null ? null : { row, facts };
}

/** What an owner decides. `replace` allows a device of that name to get a new key. */
export interface Approval {
  name: string;
  screen: string;
  replace: boolean;
}

async function deviceFor(env: Env, { name, replace }: Approval): Promise<{ id: string; existing: Device | null }> {
  const existing = await findDeviceByName(env.DB, name);
  if (existing !== null && !replace)
    throw new ApiError("conflict", `A device named "${name}" exists already. Choose another name, or say that this one replaces its key.`);
  return { id: existing?.id ?? randomId(), existing };
}

/** Approves a pairing after the characters of the agent's screen were repeated; a wrong pair counts as a try. */
export async function approve(env: Env, { row }: Waiting, approval: Approval, member: string): Promise<{ name: string }> {
  const name = DeviceName.safeParse(approval.name);
  if (!name.success) throw new ApiError("bad_request", `name: ${name.error.issues[0]?.message ?? "is not valid"}`);
  if (!constantTimeEqual(approval.screen.trim().toUpperCase(), row.screen)) {
    await countWrongTry(env.DB, row.id, PAIRING.wrongTries, Date.now());
    const left = PAIRING.wrongTries - row.wrongTries - 1;
    throw new ApiError(
      "forbidden",
      left > 0
        ? `These are not the two characters on the device's screen. ${left} ${left === 1 ? "try" : "tries"} left.`
        : "These are not the two characters on the device's screen. Too many tries: start the agent again for a new code.",
    );
  }
  const { id, existing } = await deviceFor(env, { ...approval, name: name.data });
  const decision = { id: row.id, deviceId: id, deviceName: name.data, member, at: Date.now(), maxTries: PAIRING.wrongTries };
  if (!(await approvePairing(env.DB, decision)))
    throw new ApiError("not_found", "This code does not wait any more. Start the agent again.");
  if (existing === null && (await findDeviceByName(env.DB, name.data)) !== null) throw await nameTaken(env, name.data, Date.now());
  return { name: name.data };
}

/** Refuses a pairing. */
export async function deny(env: Env, { row }: Waiting): Promise<void> {
  await denyPairing(env.DB, row.id, Date.now());
  await forget(env, row.id);
}

/** What an agent hears when it asks. The names of RFC 8628 §3.5. */
export type Claimed =
  | { state: "authorization_pending" | "slow_down" | "access_denied" | "expired_token" | "name_taken" }
  | { state: "unknown" }
  | { state: "paired"; deviceKey: string; device: string; mcpUrl: string; pairing: PairingRow };

/** Answers an agent's poll; the first one after the approval gets the key, and no other ever does. */
export async function claim(env: Env, deviceCode: string): Promise<Claimed> {
  const row = DEVICE_CODE.test(deviceCode) ? await findByDeviceCode(env.DB, await hashSecret(deviceCode), Date.now()) : null;
  if (row === null) return { state: "unknown" };
  if (row.deniedAt !== null) return { state: "access_denied" };
  if (row.approvedAt === null) return { state: await paced(env, row) };
  const { deviceId, deviceName } = row;
  if (deviceId === null || deviceName === null) throw new Error("an approved pairing names no device");
  const deviceKey = mintDeviceKey(deviceId);
  const at = Date.now();
  const keyHash = await hashSecret(deviceKey);
  const isMine = await claimPairing(env.DB, { id: row.id, keyHash, deviceId, deviceName, at, olderUntil: at + DEVICE.keyOverlapMs });
  if (!isMine) return { state: (await findDeviceByName(env.DB, deviceName))?.id === deviceId ? "expired_token" : "name_taken" };
  await forget(env, row.id);
  return { state: "paired", deviceKey, device: deviceName, mcpUrl: mcpUrl(configOf(env).origins[0] ?? "", deviceName), pairing: row };
}

async function paced(env: Env, row: PairingRow): Promise<"authorization_pending" | "slow_down"> {
  const now = Date.now();
  await markPolled(env.DB, row.id, now);
  // Half the interval: a network does not keep to the second.
  return row.polledAt !== null && now - row.polledAt < PAIRING.pollMs / 2 ? "slow_down" : "authorization_pending";
}

async function forget(env: Env, id: string): Promise<void> {
  try {
    await closePairing(env, id);
  } catch (error) {
    // Its alarm ends it within ten minutes.
    log("warn", "pairing.not-closed", { error });
  }
}
