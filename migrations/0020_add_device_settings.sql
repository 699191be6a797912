-- Compatibility switches and session expiry of a device, as JSON; a member that is not there has its default.
ALTER TABLE devices ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
