/** The object's copy of its grants, by which it decides. D1 has the record; revisions keep the two in order. */
import { Grant } from "../src/policy/grant.ts";

type Row = { body: string };

export class Grants {
  readonly #sql: SqlStorage;
  readonly #cache = new Map<string, Grant>();

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /** A grant, usable or not; undefined when the object never heard of it. */
  get(id: string): Grant | undefined {
    const cached = this.#cache.get(id);
    if (cached !== undefined) return cached;
    const [row] = this.#sql.exec<Row>("SELECT body FROM grants WHERE id = ?", id).toArray();
    if (row === undefined) return undefined;
    const grant = Grant.parse(JSON.parse(row.body));
    this.#cache.set(id, grant);
    return grant;
  }

  /**
   * Takes a grant over. False when that changes nothing: an older revision never replaces a newer one, except that a
   * revocation is final whichever side hears of it first.
   */
  put(grant: Grant): boolean {
    const known = this.get(grant.id);
    const next = merge(known, grant);
    if (next === known) return false;
    this.#sql.exec(
      `INSERT INTO grants (id, revision, expires_at, body) VALUES (?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, expires_at = excluded.expires_at, body = excluded.body`,
      next.id,
      next.revision,
      next.expiresAt,
      JSON.stringify(next),
    );
    this.#cache.set(next.id, next);
    return true;
  }

  /** When the next grant expires (epoch ms), or undefined. */
  nextExpiry(now: number): number | undefined {
    const at = this.#sql.exec<{ at: number | null }>("SELECT MIN(expires_at) AS at FROM grants WHERE expires_at > ?", now).one().at;
    return at ?? undefined;
  }

  /** Ids of the grants that are over by `now` and were not by `since`. */
  expiredBetween(since: number, now: number): string[] {
    return this.#sql
      .exec<{ id: string }>("SELECT id FROM grants WHERE expires_at > ? AND expires_at <= ?", since, now)
      .toArray()
      .map((row) => row.id);
  }
}

/** The newer of two states. The object hears of a narrowing before D1 gives it a revision, so an equal one may pause. */
function merge(known: Grant | undefined, grant: Grant): Grant {
  if (known === undefined) return grant;
  const isNewer =
    grant.revision > known.revision || (grant.revision === known.revision && known.pausedAt === null && grant.pausedAt !== null);
  const next = isNewer ? grant : known;
  const revokedAt = known.revokedAt ?? grant.revokedAt;
  return next.revokedAt === revokedAt ? next : { ...next, revokedAt };
}
