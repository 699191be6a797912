-- Former names of devices: their URLs work until then (epoch ms), and nobody else takes them before.
CREATE TABLE device_names (
  name TEXT PRIMARY KEY,
  device_id TEXT NOT NULL REFERENCES devices (id),
  until INTEGER NOT NULL
) STRICT;
CREATE INDEX device_names_device ON device_names (device_id);

-- For the owner's eyes; it never reaches the device.
ALTER TABLE grants ADD COLUMN note TEXT;
