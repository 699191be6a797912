-- Further public origins, behind those of LONGLINE_ORIGINS; the first of all is canonical.
CREATE TABLE origins (
  origin TEXT PRIMARY KEY,
  position INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
