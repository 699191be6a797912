-- What a person has seen of a device's tools, so that new and changed ones can be marked. `tools` is a JSON object from
-- tool name to the digest of its definition. Times are epoch ms.
CREATE TABLE tool_looks (
  member_id TEXT NOT NULL REFERENCES members (id),
  device_id TEXT NOT NULL REFERENCES devices (id),
  looked_at INTEGER NOT NULL,
  tools TEXT NOT NULL,
  PRIMARY KEY (member_id, device_id)
) STRICT;
