/**
 * Table `subscriptions`: which resources each listener and each legacy session wants to hear of. A session's rows live
 * as long as the session; whether anybody hears of an update depends on its stream.
 */
import { LISTEN } from "../src/limits.ts";

/** Owner of a modern listener's rows, by the listener's id. */
export function listenerOwner(id: string): string {
  return `l:${id}`;
}

/** Owner of a legacy session's rows. */
export function sessionOwner(id: string): string {
  return `s:${id}`;
}

export class Subscriptions {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /** Adds a resource. False when the owner has as many as one may have. */
  add(owner: string, uri: string): boolean {
    const { n } = this.#sql.exec<{ n: number }>("SELECT COUNT(*) AS n FROM subscriptions WHERE owner = ?", owner).one();
    if (n >= LISTEN.resources && !this.has(owner, uri)) return false;
    this.#sql.exec("INSERT OR IGNORE INTO subscriptions (owner, uri) VALUES (?, ?)", owner, uri);
    return true;
  }

  remove(owner: string, uri: string): void {
    this.#sql.exec("DELETE FROM subscriptions WHERE owner = ? AND uri = ?", owner, uri);
  }

  has(owner: string, uri: string): boolean {
    return this.#sql.exec("SELECT 1 FROM subscriptions WHERE owner = ? AND uri = ?", owner, uri).toArray().length > 0;
  }

  /** What one owner wants. */
  of(owner: string): string[] {
    return this.#sql
      .exec<{ uri: string }>("SELECT uri FROM subscriptions WHERE owner = ? ORDER BY uri", owner)
      .toArray()
      .map((row) => row.uri);
  }

  /** Forgets an owner. */
  drop(owner: string): void {
    this.#sql.exec("DELETE FROM subscriptions WHERE owner = ?", owner);
  }

  /** Forgets the rows of listeners without a socket and of sessions that are no more. */
  sweep(openListeners: ReadonlySet<string>): void {
    this.#sql.exec("DELETE FROM subscriptions WHERE owner LIKE 's:%' AND substr(owner, 3) NOT IN (SELECT id FROM sessions)");
    const owners = this.#sql.exec<{ owner: string }>("SELECT DISTINCT owner FROM subscriptions WHERE owner LIKE 'l:%'").toArray();
    for (const { owner } of owners) if (!openListeners.has(owner)) this.drop(owner);
  }
}
