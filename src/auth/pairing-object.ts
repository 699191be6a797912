/**
 * The way to a Pairing object: a typed face over the library's untyped stub. SECURITY: objects are named by a pairing id
 * that was read from D1, never by anything of a request, and no request of a client is passed on.
 */
import { proxyDurable } from "itty-durable";
import { base64url } from "jose";
import { z } from "zod";
import type { Env } from "../env.ts";
import { PAIRING, TEXT } from "../limits.ts";

const Short = z.string().max(TEXT.label);

/** What a device says of itself. Foreign text: cleaned by whoever shows it. */
export const PairingFacts = z.strictObject({
  host: Short,
  system: Short,
  agentVersion: Short,
  /** The name it asks for. */
  name: z.string().max(PAIRING.nameLength),
  /** Where the request came from, when that is known. */
  address: z.string().max(64).nullable(),
});
export type PairingFacts = z.infer<typeof PairingFacts>;

interface PairingStub {
  open(record: string, expiresAt: number): Promise<{ ok: true }>;
  read(): Promise<{ record: string | null }>;
  close(): Promise<{ ok: true }>;
}

const Answer = z.object({ record: z.string().nullable() });

function stubOf(env: Env, id: string): PairingStub {
  const { PAIRING: everywhere, LONGLINE_JURISDICTION: jurisdiction } = env;
  const namespace = jurisdiction === undefined ? everywhere : everywhere.jurisdiction(jurisdiction);
  // SAFETY: the methods of durable/pairing.ts; the library's stub is `any`.
  return proxyDurable(namespace, { parse: true }).get(id) as PairingStub;
}

/** Stores what a device says of itself until `expiresAt` (epoch ms). */
export async function openPairing(env: Env, id: string, facts: PairingFacts, expiresAt: number): Promise<void> {
  // ASCII, because arguments travel in a header.
  await stubOf(env, id).open(base64url.encode(new TextEncoder().encode(JSON.stringify(facts))), expiresAt);
}

/** What the device said of itself, or null when that is lost or over. */
export async function readPairing(env: Env, id: string): Promise<PairingFacts | null> {
  const { record } = Answer.parse(await stubOf(env, id).read());
  if (record === null) return null;
  const parsed = PairingFacts.safeParse(JSON.parse(new TextDecoder().decode(base64url.decode(record))));
  return parsed.success ? parsed.data : null;
}

/** Forgets a pairing. */
export async function closePairing(env: Env, id: string): Promise<void> {
  await stubOf(env, id).close();
}
