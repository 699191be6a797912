/** Table `signing_keys`: public halves in the clear, private halves sealed. Times are epoch ms. */
import { z } from "zod";

const Row = z
  .object({
    kid: z.string(),
    public_jwk: z.string(),
    sealed_private: z.string(),
    created_at: z.number(),
    rotated_at: z.number().nullable(),
    retired_at: z.number().nullable(),
  })
  .transform((row) => ({
    kid: row.kid,
    /** JWK as JSON text. */
    publicJwk: row.public_jwk,
    /** Compact JWE of the private JWK. */
    sealedPrivate: row.sealed_private,
    createdAt: row.created_at,
    /** Signs until then. */
    rotatedAt: row.rotated_at,
    /** Verifies until then. */
    retiredAt: row.retired_at,
  }));

/** A signing key as D1 keeps it. */
export type SigningKey = z.output<typeof Row>;

/** A key that is about to be stored. */
export type NewSigningKey = Pick<SigningKey, "kid" | "publicJwk" | "sealedPrivate" | "createdAt">;

const COLUMNS = "kid, public_jwk, sealed_private, created_at, rotated_at, retired_at";

function insertUnlessCurrent(db: D1Database, key: NewSigningKey): D1PreparedStatement {
  return db
    .prepare(
      `INSERT INTO signing_keys (kid, public_jwk, sealed_private, created_at)
       SELECT ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM signing_keys WHERE rotated_at IS NULL)`,
    )
    .bind(key.kid, key.publicJwk, key.sealedPrivate, key.createdAt);
}

/** Stores the first key. When another isolate was faster, its key stays the current one. */
export async function insertFirstSigningKey(db: D1Database, key: NewSigningKey): Promise<void> {
  await insertUnlessCurrent(db, key).run();
}

/** The key that signs now, or null. */
export async function findCurrentSigningKey(db: D1Database): Promise<SigningKey | null> {
  const row = await db
    .prepare(`SELECT ${COLUMNS} FROM signing_keys WHERE rotated_at IS NULL ORDER BY created_at DESC, kid LIMIT 1`)
    .first();
  return row === null ? null : Row.parse(row);
}

/** All keys that still verify at `now`. */
export async function listVerifyingKeys(db: D1Database, now: number): Promise<SigningKey[]> {
  const { results } = await db
    .prepare(`SELECT ${COLUMNS} FROM signing_keys WHERE retired_at IS NULL OR retired_at > ? ORDER BY created_at`)
    .bind(now)
    .all();
  return results.map((row) => Row.parse(row));
}

/** Makes `next` the signing key; the ones before it, whenever they signed, verify until `retireAt` at the latest. */
export async function rotateSigningKeys(db: D1Database, next: NewSigningKey, retireAt: number): Promise<void> {
  await db.batch([
    db
      .prepare("UPDATE signing_keys SET rotated_at = COALESCE(rotated_at, ?1), retired_at = MIN(COALESCE(retired_at, ?2), ?2)")
      .bind(next.createdAt, retireAt),
    insertUnlessCurrent(db, next),
  ]);
}
