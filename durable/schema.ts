/**
 * The object's SQLite: ordered steps, each run once, synchronously. An object without tables was never dialled into;
 * only a dial-in makes them, by `migrate`, so that a look-up leaves nothing behind. docs/storage.md lists layout and lifetime.
 */

const STEPS: readonly (readonly string[])[] = [
  [
    // Facts of the device and its tunnel; one row per name, values as JSON.
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
    // The copy of D1's grants that decides; kept until the object is destroyed, so that an old revision cannot return.
    "CREATE TABLE grants (id TEXT PRIMARY KEY, revision INTEGER NOT NULL, expires_at INTEGER NOT NULL, body TEXT NOT NULL) STRICT",
    // Legacy sessions; a row outlives its idle time by a day.
    `CREATE TABLE sessions (
       id TEXT PRIMARY KEY, grant_id TEXT NOT NULL, version TEXT NOT NULL, capabilities TEXT NOT NULL, client_info TEXT,
       log_level TEXT, is_used INTEGER NOT NULL, created_at INTEGER NOT NULL, last_used_at INTEGER NOT NULL) STRICT`,
    "CREATE INDEX sessions_grant ON sessions (grant_id, last_used_at)",
    // The catalogue by part, in pieces below the size of one SQLite value.
    "CREATE TABLE catalogue (part TEXT NOT NULL, piece INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (part, piece)) STRICT",
    // Calls that wait for a person while nobody is attached; an expired one stays for a while to say so.
    `CREATE TABLE parked_calls (
       call_id TEXT PRIMARY KEY, grant_id TEXT NOT NULL, session_id TEXT, generation INTEGER NOT NULL, seq INTEGER NOT NULL,
       remaining_ms INTEGER NOT NULL, input_by INTEGER NOT NULL, is_expired INTEGER NOT NULL, facts TEXT NOT NULL) STRICT`,
    "CREATE INDEX parked_calls_grant ON parked_calls (grant_id)",
    "CREATE TABLE parked_asks (call_id TEXT NOT NULL, ask_id TEXT NOT NULL, message BLOB NOT NULL, PRIMARY KEY (call_id, ask_id)) STRICT",
    // What the one alarm has to do, and when (epoch ms).
    "CREATE TABLE due (work TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT",
    "CREATE TABLE schema_version (version INTEGER NOT NULL) STRICT",
    "INSERT INTO schema_version (version) VALUES (0)",
  ],
  [
    // Who wants to hear of which resource: a listener (by its socket) or a legacy session.
    "CREATE TABLE subscriptions (owner TEXT NOT NULL, uri TEXT NOT NULL, PRIMARY KEY (owner, uri)) STRICT",
    "CREATE INDEX subscriptions_uri ON subscriptions (uri)",
    // What the agent's run of that name was asked to subscribe to, and whether it has answered.
    "CREATE TABLE upstream_resources (uri TEXT PRIMARY KEY, instance TEXT NOT NULL, is_taken INTEGER NOT NULL) STRICT",
  ],
  [
    // Audit rows that D1 did not take; handed over by the alarm, then deleted.
    "CREATE TABLE audit_kept (id TEXT PRIMARY KEY, row TEXT NOT NULL) STRICT",
    // When capped grants made their calls of the last minute.
    "CREATE TABLE rates (grant_id TEXT PRIMARY KEY, calls TEXT NOT NULL) STRICT",
  ],
  [
    // The audit has what it held, and a write here holds back whatever the object sends until it is on disk.
    "DROP TABLE rates",
  ],
  [
    // By grant as well, for an instance of an upstream can be one grant's own. What was asked before is asked again.
    "DROP TABLE upstream_resources",
    `CREATE TABLE upstream_resources (
       grant_id TEXT NOT NULL, uri TEXT NOT NULL, instance TEXT NOT NULL, is_taken INTEGER NOT NULL, PRIMARY KEY (grant_id, uri)) STRICT`,
  ],
];

/** Whether the object has state at all: false until the first dial-in, and again once it is destroyed. */
export function hasSchema(sql: SqlStorage): boolean {
  return sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'").toArray().length > 0;
}

/** Brings existing tables to the newest step. */
export function migrate(storage: DurableObjectStorage): void {
  const { sql } = storage;
  storage.transactionSync(() => {
    const version = hasSchema(sql) ? Number(sql.exec("SELECT version FROM schema_version").one()["version"]) : 0;
    for (const step of STEPS.slice(version)) for (const statement of step) sql.exec(statement);
    if (version < STEPS.length) sql.exec("UPDATE schema_version SET version = ?", STEPS.length);
  });
}
