/**
 * Sealing with the relay's one secret. Each purpose has its own key, derived from LONGLINE_ROOT_KEY by HKDF-SHA-256
 * (RFC 5869) with the purpose as `info`, so that what is sealed for one purpose never opens for another. The sealed
 * form is a compact JWE, `dir` with A256GCM; its protected header names what it belongs to.
 */
import { base64url, CompactEncrypt, compactDecrypt } from "jose";

/** What is sealed; part of the derivation, so a name never changes its meaning. */
export type SealPurpose = "signing-key" | "request-state" | "consent" | "refresh-answer" | "sign-in";

async function deriveKey(rootKey: string, purpose: SealPurpose): Promise<Uint8Array> {
  const root = await crypto.subtle.importKey("raw", base64url.decode(rootKey), "HKDF", false, ["deriveBits"]);
  const info = new TextEncoder().encode(`longline/${purpose}/v1`);
  const bits = await crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info }, root, 256);
  return new Uint8Array(bits);
}

/** Seals a text for a purpose and binds it to `id`, the name of the thing it belongs to. */
export async function seal(rootKey: string, purpose: SealPurpose, id: string, text: string): Promise<string> {
  const key = await deriveKey(rootKey, purpose);
  return new CompactEncrypt(new TextEncoder().encode(text)).setProtectedHeader({ alg: "dir", enc: "A256GCM", kid: id }).encrypt(key);
}

/** Opens what `seal` made for the same purpose and id. Throws when it was made with another root key, or for another id. */
export async function unseal(rootKey: string, purpose: SealPurpose, id: string, sealed: string): Promise<string> {
  const key = await deriveKey(rootKey, purpose);
  const options = { keyManagementAlgorithms: ["dir"], contentEncryptionAlgorithms: ["A256GCM"] };
  const { plaintext, protectedHeader } = await compactDecrypt(sealed, key, options);
  // SECURITY: the header is authenticated, so a sealed value moved to another row does not open there.
  if (protectedHeader.kid !== id) throw new Error("sealed for another id");
  return new TextDecoder().decode(plaintext);
}
