-- A device that asks to be paired (RFC 8628). Both codes are stored as SHA-256; what the device says of itself is in the
-- Pairing object of this id, and decides nothing. Times are epoch ms.
CREATE TABLE pairings (
  id TEXT PRIMARY KEY,
  device_hash TEXT NOT NULL UNIQUE,
  user_hash TEXT NOT NULL UNIQUE,
  -- Two characters on the agent's screen, to be repeated by whoever approves.
  screen TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  wrong_tries INTEGER NOT NULL DEFAULT 0,
  denied_at INTEGER,
  approved_at INTEGER,
  approved_by TEXT REFERENCES members (id),
  -- The device it becomes: a new id and its name, or one that exists and gets a new key.
  device_id TEXT,
  device_name TEXT,
  polled_at INTEGER
) STRICT;

-- The one insert that claims a pairing: a second one breaks this index and writes nothing.
ALTER TABLE device_keys ADD COLUMN pairing_id TEXT;
CREATE UNIQUE INDEX device_keys_pairing ON device_keys (pairing_id) WHERE pairing_id IS NOT NULL;
