-- One row per call, per refused attempt and per administrative action; never arguments or results. Times are epoch ms.
-- No references: a row outlives what it names, and a device's object writes it without looking anything up.
CREATE TABLE audit (
  -- Order of arrival; what a follower continues from.
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  -- The call id, or a random id of its own. A row that is written twice is one row.
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK (kind IN ('call', 'refused', 'admin')),
  -- When the call arrived, or the action was taken.
  at INTEGER NOT NULL,
  device_id TEXT,
  device TEXT,
  grant_id TEXT,
  label TEXT,
  member_id TEXT,
  client TEXT,
  client_version TEXT,
  -- Revisions spoken with the client and with the upstream.
  client_protocol TEXT,
  upstream_protocol TEXT,
  -- MCP method, or the name of the action.
  method TEXT,
  -- Tool, resource or prompt; for an action what it was done to.
  target TEXT,
  outcome TEXT NOT NULL,
  reason TEXT,
  duration_ms INTEGER,
  bytes_in INTEGER,
  bytes_out INTEGER
) STRICT;
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_device ON audit (device_id, at);

-- Settings of the whole relay, values as JSON.
CREATE TABLE settings (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
