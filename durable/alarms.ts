/**
 * The object's one alarm, shared by everything that is due later than a call in flight could wait for. Each kind of
 * work has one time; the alarm is set to the earliest. Work is idempotent: the platform may run an alarm twice.
 */

/** Kinds of work: silent newcomers, parked calls that waited too long, grants that expire, D1 to be told again, audit rows it did not take. */
export type Work = "hello" | "parked" | "grants" | "sync" | "audit";

export class Alarms {
  readonly #storage: DurableObjectStorage;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
  }

  /** Sets when a kind of work is due next (epoch ms); undefined: not at all. */
  plan(work: Work, at: number | undefined): void {
    const { sql } = this.#storage;
    const before = this.#next();
    if (at === undefined) sql.exec("DELETE FROM due WHERE work = ?", work);
    else sql.exec("INSERT INTO due (work, at) VALUES (?, ?) ON CONFLICT (work) DO UPDATE SET at = excluded.at", work, Math.ceil(at));
    if (this.#next() !== before) this.#arm();
  }

  /** As `plan`, but never later than what is planned already. */
  planBy(work: Work, at: number): void {
    const [row] = this.#storage.sql.exec<{ at: number }>("SELECT at FROM due WHERE work = ?", work).toArray();
    if (row === undefined || row.at > at) this.plan(work, at);
  }

  /** The work that is due at `now`, taken out of the plan; each kind plans itself again. */
  take(now: number): Work[] {
    return this.#storage.sql
      .exec<{ work: string }>("DELETE FROM due WHERE at <= ? RETURNING work", now)
      .toArray()
      .map((row) => row.work as Work);
  }

  /** Sets the platform's alarm to what is planned; also after it ran. */
  rearm(): void {
    this.#arm();
  }

  #next(): number | null {
    return this.#storage.sql.exec<{ at: number | null }>("SELECT MIN(at) AS at FROM due").one().at;
  }

  #arm(): void {
    const next = this.#next();
    // Writes to storage are ordered and gate what is sent, so neither call needs to be awaited.
    void (next === null ? this.#storage.deleteAlarm() : this.#storage.setAlarm(next));
  }
}
