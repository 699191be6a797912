/**
 * Random secrets, their hashes and their textual forms. Portable: runs in the Worker and wherever else WebCrypto
 * exists. Secrets are compared by hash or in constant time, and stored as hashes only.
 */
import { base64url } from "jose";
import { NAMES } from "../limits.ts";

const DEVICE_KEY = /^llk_([0-9a-f]{32})_([A-Za-z0-9_-]{43})$/;
const OWNER_TOKEN = /^llo_[A-Za-z0-9_-]{43}$/;

function randomBytes(bits: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(bits / 8));
}

/** A new id: 32 hexadecimal digits. Unique and unguessable enough to name things; never a credential. */
export function randomId(): string {
  return [...randomBytes(NAMES.idBits)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A new secret: 256 random bits in base64url, 43 characters. */
export function randomSecret(): string {
  return base64url.encode(randomBytes(NAMES.secretBits));
}

/** SHA-256 of a secret's whole text, in base64url: the form in which D1 knows device keys and owner tokens. */
export async function hashSecret(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return base64url.encode(new Uint8Array(digest));
}

/** Whether two texts are equal, in a time that depends on their lengths only. */
export function constantTimeEqual(a: string, b: string): boolean {
  const left = new TextEncoder().encode(a);
  const right = new TextEncoder().encode(b);
  let difference = left.length ^ right.length;
  for (let i = 0; i < left.length; i++) difference |= (left[i] ?? 0) ^ (right[i % right.length] ?? 0);
  return difference === 0;
}

/** A new device key for a device id: `llk_<device id>_<secret>`. */
export function mintDeviceKey(deviceId: string): string {
  return `llk_${deviceId}_${randomSecret()}`;
}

/** The device id a key claims, or undefined when the text is no device key. The claim is proven by the hash alone. */
export function parseDeviceKey(text: string): { deviceId: string } | undefined {
  const deviceId = DEVICE_KEY.exec(text)?.[1];
  return deviceId === undefined ? undefined : { deviceId };
}

/** A new owner token: `llo_<secret>`. */
export function mintOwnerToken(): string {
  return `llo_${randomSecret()}`;
}

/** Whether a text has the form of an owner token. */
export function isOwnerToken(text: string): boolean {
  return OWNER_TOKEN.test(text);
}
