-- How many attempts a row stands for: strangers' refused attempts are counted together. Null for a row of its own.
ALTER TABLE audit ADD COLUMN attempts INTEGER;
