-- Times are epoch milliseconds. Secrets are stored as SHA-256 (base64url) or sealed; never as such.

CREATE TABLE members (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('owner', 'member')),
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE owner_tokens (
  hash TEXT PRIMARY KEY,
  member_id TEXT NOT NULL REFERENCES members (id),
  label TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT;

CREATE TABLE devices (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  -- First authenticated dial-in: only then does the device's object exist.
  born_at INTEGER,
  -- Presence, written by the object; a write with an older generation changes nothing.
  generation INTEGER NOT NULL DEFAULT 0,
  online INTEGER NOT NULL DEFAULT 0,
  last_seen_at INTEGER,
  agent_version TEXT,
  -- Grows with each change of this device's grants.
  grant_revision INTEGER NOT NULL DEFAULT 0,
  paused_at INTEGER,
  removed_at INTEGER
) STRICT;
-- A removed device frees its name.
CREATE UNIQUE INDEX devices_name ON devices (name) WHERE removed_at IS NULL;

CREATE TABLE device_keys (
  hash TEXT PRIMARY KEY,
  device_id TEXT NOT NULL REFERENCES devices (id),
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) STRICT;
CREATE INDEX device_keys_device ON device_keys (device_id);

CREATE TABLE grants (
  id TEXT PRIMARY KEY,
  device_id TEXT NOT NULL REFERENCES devices (id),
  member_id TEXT NOT NULL REFERENCES members (id),
  label TEXT NOT NULL,
  -- JSON: Rights and Caps of src/policy/grant.ts.
  rights TEXT NOT NULL,
  caps TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  paused_at INTEGER,
  revoked_at INTEGER,
  revision INTEGER NOT NULL
) STRICT;
CREATE INDEX grants_device ON grants (device_id, revision);

CREATE TABLE signing_keys (
  kid TEXT PRIMARY KEY,
  public_jwk TEXT NOT NULL,
  -- JWE (dir, A256GCM) under LONGLINE_ROOT_KEY.
  sealed_private TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  -- Signs until then; verifies until retired_at.
  rotated_at INTEGER,
  retired_at INTEGER
) STRICT;
