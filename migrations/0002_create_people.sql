-- People beyond the owner: how they sign in, what they were invited to. Codes and sessions are stored as SHA-256 only.

-- A removed member keeps the row, so that the audit still has a name; nothing of theirs opens anything any more.
ALTER TABLE members ADD COLUMN removed_at INTEGER;

CREATE TABLE web_sessions (
  hash TEXT PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  member_id TEXT NOT NULL REFERENCES members (id),
  -- How the person signed in: token, setup, invitation, oidc, access.
  via TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT;
CREATE INDEX web_sessions_member ON web_sessions (member_id);

-- Set-up links: sign an existing member in, once.
CREATE TABLE setup_codes (
  hash TEXT PRIMARY KEY,
  member_id TEXT NOT NULL REFERENCES members (id),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  used_at INTEGER
) STRICT;

CREATE TABLE invitations (
  id TEXT PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  label TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('owner', 'member')),
  -- What the invited person may be given on one device; all null for an invitation to the relay alone.
  device_id TEXT REFERENCES devices (id),
  rights TEXT,
  caps TEXT,
  -- ms of life that a grant made from this invitation has.
  grant_ms INTEGER,
  created_by TEXT NOT NULL REFERENCES members (id),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  -- One update with `taken_at IS NULL` makes an invitation single-use.
  taken_at INTEGER,
  taken_by TEXT REFERENCES members (id),
  revoked_at INTEGER
) STRICT;
CREATE INDEX invitations_taken_by ON invitations (taken_by);

-- Who an outside issuer's subject is here.
CREATE TABLE identities (
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  member_id TEXT NOT NULL REFERENCES members (id),
  created_at INTEGER NOT NULL,
  PRIMARY KEY (issuer, subject)
) STRICT;
