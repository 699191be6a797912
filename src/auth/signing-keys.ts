/**
 * The keys that sign access tokens. Rows of D1, private halves sealed; an isolate keeps the imported keys for
 * EDGE.registryCacheMs and refreshes them beside the request, so that the call path never waits for D1. The first key
 * is made when it is first needed; rotation keeps older keys verifying until the tokens they signed have expired.
 */
import { waitUntil } from "cloudflare:workers";
import { type CryptoKey, exportJWK, generateKeyPair, importJWK } from "jose";
import { configOf, type Env } from "../env.ts";
import { ApiError } from "../errors.ts";
import { EDGE } from "../limits.ts";
import { log } from "../log.ts";
import {
  findCurrentSigningKey,
  insertFirstSigningKey,
  listVerifyingKeys,
  type NewSigningKey,
  rotateSigningKeys,
  type SigningKey,
} from "../db/signing-keys.ts";
import { seal, unseal } from "./sealing.ts";
import { randomId } from "./secrets.ts";

/** JOSE algorithm of access tokens (RFC 8037): Ed25519. */
export const SIGNING_ALGORITHM = "EdDSA";

interface VerifyingKey {
  key: CryptoKey;
  /** Epoch ms; null while nobody set an end. */
  retiredAt: number | null;
}

interface Signer {
  kid: string;
  key: CryptoKey;
}

// Values only, never promises: a promise of one request must not be awaited by another.
const cache = {
  verifying: new Map<string, VerifyingKey>(),
  /** Epoch ms of the last read; 0 before the first. */
  readAt: 0,
  signer: undefined as (Signer & { readAt: number }) | undefined,
};

/** Forgets what this isolate knows, so that the next use reads D1. */
export function forgetSigningKeys(): void {
  cache.verifying.clear();
  cache.readAt = 0;
  cache.signer = undefined;
}

async function importKey(jwk: string): Promise<CryptoKey> {
  const key = await importJWK(JSON.parse(jwk), SIGNING_ALGORITHM);
  if (key instanceof Uint8Array) throw new TypeError("a signing key must be asymmetric");
  return key;
}

async function makeKey(rootKey: string, now: number): Promise<NewSigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(SIGNING_ALGORITHM, { extractable: true });
  const kid = randomId();
  return {
    kid,
    publicJwk: JSON.stringify(await exportJWK(publicKey)),
    sealedPrivate: await seal(rootKey, "signing-key", kid, JSON.stringify(await exportJWK(privateKey))),
    createdAt: now,
  };
}

async function readVerifyingKeys(env: Env, now: number): Promise<void> {
  const rows = await listVerifyingKeys(env.DB, now);
  const keys = await Promise.all(rows.map(async (row) => [row.kid, await importVerifying(row)] as const));
  cache.verifying = new Map(keys);
  cache.readAt = now;
}

async function importVerifying(row: SigningKey): Promise<VerifyingKey> {
  return { key: await importKey(row.publicJwk), retiredAt: row.retiredAt };
}

function refreshBeside(env: Env, now: number): void {
  // Marked as read before the read, so that one request of many starts it; a failed one is tried again after the same time.
  cache.readAt = now;
  waitUntil(readVerifyingKeys(env, now).catch((error: unknown) => log("warn", "signing-keys.refresh-failed", { error })));
}

/** The public key with this id, or undefined when there is none that verifies now. Throws only when D1 cannot be read. */
export async function verifyingKey(env: Env, kid: string): Promise<CryptoKey | undefined> {
  const now = Date.now();
  if (cache.readAt === 0) await readVerifyingKeys(env, now);
  else if (!cache.verifying.has(kid) && now - cache.readAt >= EDGE.unknownKeyMs) await readVerifyingKeys(env, now);
  else if (now - cache.readAt >= EDGE.registryCacheMs) refreshBeside(env, now);
  const found = cache.verifying.get(kid);
  if (found === undefined || (found.retiredAt !== null && found.retiredAt <= now)) return undefined;
  return found.key;
}

async function currentRow(env: Env, now: number): Promise<SigningKey> {
  const existing = await findCurrentSigningKey(env.DB);
  if (existing !== null) return existing;
  await insertFirstSigningKey(env.DB, await makeKey(configOf(env).rootKey, now));
  const row = await findCurrentSigningKey(env.DB);
  if (row === null) throw new Error("the signing key that was just stored cannot be read");
  return row;
}

async function openPrivate(env: Env, row: SigningKey): Promise<string> {
  try {
    return await unseal(configOf(env).rootKey, "signing-key", row.kid, row.sealedPrivate);
  } catch (error) {
    log("error", "signing-keys.not-opened", { kid: row.kid, error });
    const message = "The signing key does not open with this LONGLINE_ROOT_KEY. Set the one that this database was made with.";
    throw new ApiError("internal", message, { cause: error });
  }
}

/** The key that signs now; the first use of a relay makes it. */
export async function signingKey(env: Env): Promise<Signer> {
  const now = Date.now();
  if (cache.signer !== undefined && now - cache.signer.readAt < EDGE.registryCacheMs) return cache.signer;
  const row = await currentRow(env, now);
  const key = await importKey(await openPrivate(env, row));
  cache.signer = { kid: row.kid, key, readAt: now };
  cache.verifying.set(row.kid, await importVerifying(row));
  return cache.signer;
}

/** Makes a new signing key at once; the keys before it verify for another `overlapMs`. */
export async function rotateSigningKey(env: Env, overlapMs: number): Promise<{ kid: string }> {
  const now = Date.now();
  const next = await makeKey(configOf(env).rootKey, now);
  await rotateSigningKeys(env.DB, next, now + overlapMs);
  forgetSigningKeys();
  return { kid: next.kid };
}
