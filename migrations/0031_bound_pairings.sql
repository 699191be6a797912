-- The address group a pairing was begun from, where it is known: one stranger must not take every place. Gone with the row.
ALTER TABLE pairings ADD COLUMN source TEXT;
