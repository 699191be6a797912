-- What the authorization server knows beside the provider library's own store. Times are epoch milliseconds.

-- A grant that was given on the consent page, and to whom.
CREATE TABLE oauth_grants (
  grant_id TEXT PRIMARY KEY REFERENCES grants (id),
  client_id TEXT NOT NULL,
  client_name TEXT NOT NULL,
  -- Where codes go, without the port of a loopback address: one installation of a client keeps its grant.
  redirect TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX oauth_grants_client ON oauth_grants (client_id);

-- One row per authorization: the library's id of it, which codes and refresh tokens carry, and our grant.
CREATE TABLE oauth_authorizations (
  id TEXT PRIMARY KEY,
  grant_id TEXT NOT NULL REFERENCES grants (id),
  member_id TEXT NOT NULL,
  -- The resource exactly as the client named it (RFC 8707).
  resource TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX oauth_authorizations_grant ON oauth_authorizations (grant_id);

-- Codes and refresh tokens that were used, by SHA-256. One insert decides who used one first.
CREATE TABLE oauth_uses (
  hash TEXT PRIMARY KEY,
  used_at INTEGER NOT NULL,
  -- Changes when a use that never finished is taken over.
  claim TEXT NOT NULL,
  -- JWE: the refresh token that was issued for it, for refreshes at the same time.
  answer TEXT,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX oauth_uses_expiry ON oauth_uses (expires_at);

-- Scopes a person said no to, for a while.
CREATE TABLE oauth_declined (
  member_id TEXT NOT NULL,
  client_id TEXT NOT NULL,
  device_id TEXT NOT NULL,
  scope TEXT NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (member_id, client_id, device_id, scope)
) STRICT;
